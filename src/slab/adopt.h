/* adopt.h: taking slabs over from owners that do not use them: ended ones and, by Route P, live but
 * idle ones.
 *
 * The adopter holds its own latch and tries the other's; while it holds both, no other thread can
 * touch the slab's local bits or lists. A slab may at that moment be on its way into the old
 * owner's pending queue: the thread that drains it there sends it on. */
#ifndef HAK_SLAB_ADOPT_H
#define HAK_SLAB_ADOPT_H

#include "purge/purge.h"
#include "slab/owner.h"

/* A slab of the class with free blocks in `local`, now owned by `owner`, or NULL. */
struct slab *adopt_from_ended(struct owner *owner, unsigned class);
/* Adopts from an owner without a thread, the starter heap's, whose latch is held as well. */
struct slab *adopt_from_shared(struct owner *shared, struct owner *owner, unsigned class);
/* Does so, except for its current slab. */
struct slab *adopt_listed(struct owner *shared, struct owner *owner, unsigned class);
struct slab *adopt_route_p(struct owner *owner, unsigned class);

/* Route P's conditions, of mission M4; only tests change them. An owner has the first right to its
 * slab for refusal_ns after the first remote free, and is idle after idle_ns without a slow path.
 * The slab has remote_min remote frees, or all its blocks. */
struct route_p {
  uint64_t refusal_ns, idle_ns;
  unsigned remote_min;
};
extern struct route_p route_p;

/* Observed, not announced, so that owners pay nothing for it: no slow path since an observer
 * looked, at least that long ago. */
bool owner_idled(struct owner *owner, uint64_t now_ns, uint64_t for_ns);

/* Called at intervals by the thread that purges: the owner becomes dormant when it was in no slow
 * path for a decay time (0: at once); wholly free slabs of an owner that does not run go back to
 * the pool, and old free pages in its other slabs to the system. False while it runs and may idle
 * later. */
bool owner_sweep(struct owner *owner, uint64_t now_ns, struct purge *purge);

/* Latch. Drains the pending queues; wholly free slabs, also the reserved ones, go to the pool.
 * Visits at most `slabs_max` slabs; returns the unused part of the budget, 0 if slabs remain. */
size_t owner_drain_all(struct owner *owner, size_t slabs_max);

/* Also releases the current slabs, of an owner that does not need them. Latch. */
size_t owner_release_free_slabs(struct owner *owner, size_t slabs_max);

/* Latch.  Collects the remote frees of all slabs on the owner's lists, and so checks them. */
void owner_collect_all(struct owner *owner);
/* Does so for all ended owners. */
void owners_collect_ended(void);

/* Latch. The owner's thread has ended: from now on all threads may adopt its slabs. Wholly free
 * ones stay as well, for the thread that takes the heap over; the next round of purging takes
 * them. */
void owner_park(struct owner *owner);
/* Offers the slabs of an owner whose thread expects to wait, until its next slow path. Wholly free
 * ones go to the pool. */
void owner_rest(struct owner *owner);

#endif
