/* sampled_slabs.h: slabs whose blocks are all samples.
 *
 * Their entries in the owner map say MAP_TAG_UNOWNED and the class: the fast path of free detects them by a compare that it
 * makes anyway: frees of other blocks pay nothing. They have no owner: all free blocks
 * are in `remote`, where any thread takes and gives a block by one atomic operation.
 *
 *   law: local == 0, owner == NULL; a bit of `remote` is a free block, or one that a thread collects to release the slab
 *
 * Lock-free.  A few slabs of each class are open: new blocks come from those.  A slab is released by the thread that has collected all
 * its bits, after it was closed, while no other thread is inside; else it waits for the next one. */
#ifndef HAK_PROFILE_SAMPLED_SLABS_H
#define HAK_PROFILE_SAMPLED_SLABS_H

#include "slab/record.h"

/* A block of the class, or NULL without memory. */
void *sampled_slabs_take(unsigned class, struct counters *counters);
/* Frees a block of a sampled slab, by its entry in the owner map. False, after a report, when it is not a block or free already. */
bool sampled_slabs_give(void *block, struct counters *counters);
/* Whether a live block begins there; reports nothing. */
bool sampled_slabs_has(uintptr_t block);
/* Releases wholly free slabs: when the profile has been switched off. */
void sampled_slabs_release(struct counters *counters);

/* In a forked child, while it has one thread: blocks that other threads held here are lost to it. */
void sampled_slabs_after_fork(void);

#endif
