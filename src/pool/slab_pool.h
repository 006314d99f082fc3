/* slab_pool.h: the shared pool of slots for slabs: acquire_slots, release_slots and purge by age.
 *
 *   acquire_slots(class, …)
 *     stage 1   an EMPTY slot of the class           of the few that the class keeps
 *     stage 2   UNUSED slots of a SuperSlab in use   the index's first, dirty ones first; before clean ones an
 *                                                    EMPTY slot of another class
 *     stage 3   a SuperSlab of those kept, else a clean one, else from the system
 *
 * Lock-free: bit masks and an index of them.  Only metadata growth and the operating system can
 * make a caller wait.  All functions but purges may be called from any thread. */
#ifndef HAK_POOL_SLAB_POOL_H
#define HAK_POOL_SLAB_POOL_H

#include "pool/slots.h"
#include "purge/purge.h"

/* Where slots may come from, in this order; several may be asked for together. */
enum pool_reach {
  POOL_TOUCHED = 1, /* slots that have been used since their pages were given back last */
  POOL_FRESH = 2,   /* slots without pages, and wholly free SuperSlabs with pages */
  POOL_SYSTEM = 4,  /* SuperSlabs without pages, and new ones */
  POOL_WITHIN = POOL_TOUCHED | POOL_FRESH,
  POOL_ALL = POOL_WITHIN | POOL_SYSTEM,
  POOL_POPULATED = 8 /* if slots have no pages, these are made resident at once */
};

/* Slots for a slab of the class, the caller's alone; none when none is in reach, or memory is
 * refused. */
struct slot_run acquire_slots(unsigned class, enum pool_reach reach, struct counters *counters);

/* Makes the SuperSlab that is wanted (superslab_want_ahead), wholly free. The helper thread. */
void slab_pool_make_ahead(struct counters *counters);

/* Takes back the slots of a slab of the class, which has been free for `age_ms`. */
void release_slots(struct slot_run run, unsigned class, uint32_t age_ms, struct counters *counters);

/* EMPTY slabs become UNUSED and keep their age; the second returns their bytes. */
void empty_slabs_open_all(void);
uint64_t empty_slabs_bytes(void);

/* Wholly free SuperSlabs that are kept before they are old, 128 MiB: constant but for tests. */
extern uint64_t superslabs_kept_max;
/* Gives pages back that have been free for long enough.  One thread at a time. */
void slab_pool_purge(struct purge *purge);

/* In a forked child, while it has one thread. */
void slab_pool_after_fork(void);

struct slab_pool_sizes {
  uint64_t mapped_bytes; /* SuperSlabs that have address space */
  uint64_t dirty_bytes;  /* EMPTY slabs, UNUSED slots with pages and kept SuperSlabs */
};
void slab_pool_measure(struct slab_pool_sizes *sizes);

#endif
