/* chunks.h: the chain of chunks in a region, read a window at a time.  A window is a copy at one
 * moment, nearly: it takes 0.1 ms, in which the program goes on. */
#ifndef HAK_WALK_CHUNKS_H
#define HAK_WALK_CHUNKS_H

#include "broken.h"
#include "heap.h"

enum { WINDOW_MAX = 1 << 20, WINDOW_AFTER_GIANT = 1 << 16, WINDOW_MIN = 1 << 13 };
enum stop { WINDOW_END, AT_TOP, AT_FENCE, BAD_SIZE, BAD_PREV_SIZE };

struct window {
  uint64_t begin, end;
  uint8_t *bytes, *states;
};

/* The chunks of a window whose followers are in it, too. */
struct chain {
  struct window window;
  struct chunk *chunks;
  size_t count;
  enum stop stop;
  uint64_t next;      /* where it stopped */
  uint64_t header[2]; /* that is there */
  uint64_t before;    /* the chunk before that one, if it began in this window; 0 */
  uint64_t before_bytes;
  struct chunk covering; /* chain_follow: the last chunk before the one that it found */
};

struct walk {
  struct heap *heap;
  struct region *region;
  uint64_t top;
  struct chain chain;
  struct findings *findings;
};

void walk_init(struct walk *walk, struct heap *heap, struct findings *findings);
/* Reads at most `bytes` from `at` on, where a chunk begins. */
void chain_read(struct walk *walk, uint64_t at, size_t bytes);
/* A chain without its chunks, from an anchor on until it is beyond `past` or stops.  Returns the
 * first chunk at or after `wanted` that it came upon; 0: none. */
uint64_t chain_follow(struct walk *walk, uint64_t anchor, uint64_t wanted, uint64_t past);
/* The next address from `from` on where a run of chunks begins; 0: none. */
uint64_t chain_find(struct walk *walk, uint64_t from);
bool is_in_window(const struct window *window, uint64_t begin, uint64_t end);

#endif
