/* gate.h: the must-reuse gate (M3): where free blocks of a class come from before a new slab is made.
 *
 *   Route S     own pending queue (a budget of slabs per visit)
 *               → remote frees of the current slab
 *               → the class's partial list
 *   ended       slabs of owners that ended or are dormant (M5)
 *   Route P     slabs of owners that are alive but idle (M4)
 *   acquire     the shared pool
 *
 * All want the latch of `owner`. */
#ifndef HAK_SLAB_GATE_H
#define HAK_SLAB_GATE_H

#include "slab/owner.h"

/* A slab of the class with free blocks in `local`, made the bin's current one; NULL when there is no
 * memory.  Call it when the current slab's `local` is empty. */
struct slab *gate_pass(struct owner *owner, unsigned class);
/* The same, but NULL as well when the pool would have to ask the system for a SuperSlab. */
struct slab *gate_pass_within_pool(struct owner *owner, unsigned class);

#endif
