/* due.h: who gives memory back, and when: slow paths, where something is due, and the helper; and what a thread does there
 * about its own caches and slabs, by age. */
#ifndef HAK_RECLAIM_DUE_H
#define HAK_RECLAIM_DUE_H

#include "cache/heap.h"

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
