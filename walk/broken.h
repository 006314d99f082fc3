/* broken.h: evidence of damage.  A running heap looks damaged for a moment wherever it changes,
 * so what was seen once is a suspicion; it becomes a finding when it is the same, byte for byte,
 * after a while. */
#ifndef HAK_WALK_BROKEN_H
#define HAK_WALK_BROKEN_H

#include "heap.h"

enum { ROUNDS = 5, ROUND_MS = 12, FINDINGS_MAX = 1000 };
enum damage { DAMAGED_SIZE, DAMAGED_PREV_SIZE, DAMAGED_LINKS, DAMAGED_FASTBIN, DAMAGED_TCACHE };
/* The glossary's states, and two more. */
enum state { IS_LIVE, IS_FREE, IS_CACHED, IS_UNKNOWN, IS_TOP };

struct chunk {
  uint64_t address, bytes;
  bool is_free;
};

struct finding {
  enum damage what;
  uint64_t arena, chunk, word;   /* the damaged word's value */
  uint64_t before, before_bytes; /* the chunk before; 0: not known */
  enum state before_state;
  const char *detail;
};

struct findings {
  struct finding *list;
  size_t count;
};

/* Records the block before the damaged one: the usual source of a write beyond a block's end. */
void finding_before(struct finding *finding, const struct chunk *before);
void findings_add(struct findings *findings, const struct finding *finding);
/* Leaves those that are in both. */
void findings_keep(struct findings *findings, const struct findings *again);
bool is_broken(const struct findings *findings, uint64_t chunk);

#endif
