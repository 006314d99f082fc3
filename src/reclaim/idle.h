/* idle.h: what threads keep that do not run, or find all they want in their magazines. */
#ifndef HAK_RECLAIM_IDLE_H
#define HAK_RECLAIM_IDLE_H

#include "cache/heap.h"
#include "pool/purge.h"

/* Under the lock of rounds.  Visits `owners_max` owners at most, going on where the last visit ended: those that were in no slow
 * path for a decay time become dormant; wholly free slabs of such as do not run go to the pool, and pages that are free in their
 * others to the system; dormant threads are called to flush their caches.  The round is cut when there are more. */
void idle_release(const struct heap *self, struct purge *purge, size_t owners_max);

void idle_after_fork(void);

#endif
