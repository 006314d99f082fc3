/* scavenge.h: rounds of giving memory back, and who starts them. */
#ifndef HAK_RECLAIM_SCAVENGE_H
#define HAK_RECLAIM_SCAVENGE_H

#include "cache/heap.h"

/* Called at the end of slow paths, outside the latch: starts a round when one is due, and looks at the thread's own
 * caches. */
void scavenge_when_due(struct heap *heap);
/* The same in two parts.  Where a free pushes its block on a magazine the caches come before, which they may empty: the
 * block stays the youngest, and if the next free is of it again, it is seen. */
uint64_t scavenge_caches_when_due(
    struct heap *heap); /* the time in ms, if it was asked for; else 0 */
void scavenge_rest_when_due(struct heap *heap, uint64_t now_ms);

/* A round now: what is older than the decay time, or with `force` everything free, the calling thread's
 * caches included.  Returns the bytes given back.  The library must be ready. */
size_t scavenge_now(struct heap *heap, bool force);

/* The system refused memory: gives back everything, addresses too. */
void scavenge_under_pressure(struct heap *heap);

/* Whether a thread is at a round now. */
bool scavenge_is_running(void);
/* Between two rounds. */
uint64_t scavenge_interval_ms(void);

void scavenge_after_fork(void);

#endif
