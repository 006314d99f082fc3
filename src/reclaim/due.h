/* due.h: who gives memory back, and when: slow paths, where something is due, and the helper; and what a thread does there
 * about its own caches and slabs, by age. */
#ifndef HAK_RECLAIM_DUE_H
#define HAK_RECLAIM_DUE_H

#include "cache/heap.h"
#include "pool/purge.h"

extern ATOMIC(uint64_t) reclaim_next_round_ms;

/* Whether a round by age is the calling thread's, as there is no helper, or its time is to be set. */
INLINE bool reclaim_is_due(uint64_t now_ms) {
  uint32_t state = load_relaxed(&purge_state);
  if (state == PURGE_NONE || load_relaxed(&purge_has_helper)) return false;
  return state == PURGE_WANTED || now_ms >= load_relaxed(&reclaim_next_round_ms); /* a hint */
}

/* At the end of slow paths, outside the latch: what is due is done, a step of it. */
void reclaim_when_due(struct heap *heap);
/* The same in two parts.  Where a free pushes its block on a magazine the caches come before, which they may flush: the
 * block stays the youngest, and if the next free is of it again, it is seen. */
uint64_t reclaim_caches_when_due(
    struct heap *heap); /* the time in ms, if it was asked for; else 0 */
void reclaim_rest_when_due(struct heap *heap, uint64_t now_ms);

/* The helper's part: a whole round, when one is due. */
void reclaim_round_when_due(struct heap *heap);

#endif
