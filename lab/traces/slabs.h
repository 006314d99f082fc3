/* slabs.h: a simulated heap, page by page: slabs that belong to a thread or to the commons, and the
 * blocks in them.
 *
 * Classes and shapes of slabs are hakmem's own (map/size_class.h). A wholly free slab goes to a
 * pool, from where any class takes it; its pages stay touched. So `touched_pages` never falls: it
 * is the memory that a program needs without giving any back. */
#ifndef LAB_TRACES_SLABS_H
#define LAB_TRACES_SLABS_H

#include <stdbool.h>
#include <stdint.h>

#include "map/size_class.h"

enum {
  COMMONS = 0,
  THREAD_MAX = 4096,
  SLAB_BYTES_MAX = 4 << 16,
  BLOCKS_MAX = (1 << 16) / 8,
  LINE_BYTES = 64
};

struct slab {
  struct slab *next,
      *previous;  /* in its owner's list, while it has free blocks; in the pool `next` alone */
  uint16_t owner; /* a thread, or COMMONS */
  uint8_t class;
  bool is_listed;
  uint32_t free_count, capacity;
  uint32_t handed_out;             /* blocks from this one on were never taken */
  uint64_t touched;                /* a bit for each page */
  uint64_t taken[BLOCKS_MAX / 64]; /* a bit for each block outside the slab */
  uint16_t
      line_thread[SLAB_BYTES_MAX /
                  LINE_BYTES]; /* the thread that has blocks of the line, the last one of several */
  uint8_t line_count[SLAB_BYTES_MAX / LINE_BYTES];
};

struct block {
  struct slab *slab;
  uint32_t index;
};

struct slabs {
  struct slab *lists[THREAD_MAX][SLAB_CLASS_COUNT]; /* slabs with free blocks, by owner */
  bool owns
      [THREAD_MAX]
      [SLAB_CLASS_COUNT]; /* a thread that no longer does loses its slabs as they get free blocks */
  struct slab *pool[5];   /* wholly free, by number of slots */
  unsigned threads;       /* numbers below it may own slabs */
  uint64_t touched_pages;
  uint64_t shared_lines; /* blocks handed out on a line of which another thread had a block */
};

/* Takes up to `most` blocks for the thread, all from one word of a bitmap, as one atomic exchange
 * could; returns their number, at least 1. The slab is one of `owner`, a fresh one where none has
 * any. With `keeps_lines`, no block is on a line of which another thread has one. */
size_t slabs_take(struct slabs *slabs, uint16_t owner, uint16_t thread, unsigned class,
                  bool keeps_lines, struct block *blocks, size_t most);
/* Whether the thread's slabs have free blocks that were used before. */
bool slabs_has_used(struct slabs *slabs, uint16_t thread, unsigned class);
/* Takes such blocks of one word of another owner's slab; their number. */
size_t slabs_borrow(struct slabs *slabs, uint16_t thread, unsigned class, bool keeps_lines,
                    struct block *blocks, size_t most);
void slabs_give(struct slabs *slabs, struct block block);
/* The thread owns slabs of the class: one of the commons with free blocks becomes its own; false
 * where there is none. */
bool slabs_claim(struct slabs *slabs, uint16_t thread, unsigned class);
/* The thread owns no slabs of the class from now on. */
void slabs_release(struct slabs *slabs, uint16_t thread, unsigned class);

#endif
