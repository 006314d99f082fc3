/* supply.h: the supply ladder (M3): where free blocks of a class come from before a new slab is made.
 *
 *   Route S     own pending queue (a budget of slabs per visit)
 *               → remote frees of the current slab
 *               → the class's partial list
 *   borrowed    blocks that wait in other owners' pending queues (slab/borrow.h)
 *   ended       slabs of owners that ended or are dormant (M5)
 *   Route P     slabs of owners that are alive but idle (M4)
 *   fresh       blocks of our slabs that nobody has had yet
 *   acquire     the shared pool
 *
 * All want the latch of `owner`. */
#ifndef HAK_CACHE_SUPPLY_H
#define HAK_CACHE_SUPPLY_H

#include "slab/owner.h"

/* A slab of the class with free blocks in `local`, made the bin's current one; NULL when there is no
 * memory.  Call it when the current slab's `local` is empty. */
struct slab *supply_pass(struct owner *owner, unsigned class);

/* The same in steps, for who takes blocks of others, too.  First Route S: a slab with blocks that have
 * been out before, or NULL. */
struct slab *supply_reuse(struct owner *owner, unsigned class);
/* Then blocks[0] … of other owners' slabs, up to `wanted`; returns how many. */
unsigned supply_borrow(struct owner *owner, unsigned class, void **blocks, unsigned wanted);
/* Then, if the owner has no slab of the class, one of `shared`, whose blocks several threads had first. */
struct slab *supply_take_along(struct owner *owner, struct owner *shared, unsigned class);
/* Then all that may touch new pages: fresh blocks, and slabs that become ours.  Within the pool, NULL as well when it
 * would have to ask the system for a SuperSlab. */
enum supply_reach { WITHIN_POOL, AS_FAR_AS_THE_SYSTEM };
struct slab *supply_touch(struct owner *owner, unsigned class, enum supply_reach reach);

#endif
