/* due.h: decides which thread gives memory back, and when: slow paths do a step when one is due,
 * the helper a round; and empties a thread's own caches and slabs, by age. */
#ifndef HAK_RECLAIM_DUE_H
#define HAK_RECLAIM_DUE_H

#include "cache/heap.h"
#include "purge/purge.h"

extern ATOMIC(uint64_t) reclaim_next_round_ms;

/* Whether the calling thread must run a round by age, as there is no helper, or set its time. */
INLINE bool reclaim_is_due(uint64_t now_ms) {
  uint32_t state = load_relaxed(&purge_state);
  if (state == PURGE_NONE || load_relaxed(&purge_has_helper)) return false;
  return state == PURGE_WANTED || now_ms >= load_relaxed(&reclaim_next_round_ms); /* a hint */
}

/* At the end of slow paths, outside the latch: does a step of the work that is due. */
void reclaim_when_due(struct heap *heap);
/* reclaim_when_due in two parts, for a free that pushes its block on a magazine: the caches come
 * first, as they may flush it. The block stays the youngest, and a second free of it is
 * detected. */
uint64_t reclaim_caches_when_due(
    struct heap *heap); /* the time in ms, if it was asked for; else 0 */
void reclaim_rest_when_due(struct heap *heap, uint64_t now_ms);

/* Flushes the thread's magazines that are idle, or all, and takes in what others have freed. False
 * when more slabs wait than a step may visit. */
bool reclaim_flush_magazines(struct heap *heap, bool is_idle);

/* The helper's part: a round, when one is due; true when it was cut and goes on at once. */
bool reclaim_round_when_due(struct heap *heap);

#endif
