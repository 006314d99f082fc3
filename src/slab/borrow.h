/* borrow.h: what others have freed and its owner has not come for, used before memory that nobody has touched.
 *
 * How much of a class a thread needs swings by itself, so while one touches fresh pages, blocks of the same
 * class wait in the queues of others.  Only blocks change hands, or slabs that are wholly free: no owner
 * loses a slab that it works with, as it would by adoption.
 *
 * The borrower holds its own latch and tries the other's, as adopters do. */
#ifndef HAK_SLAB_BORROW_H
#define HAK_SLAB_BORROW_H

#include "slab/owner.h"

/* Takes up to `wanted` blocks of the class that were freed into other owners' slabs; they stay those slabs'
 * and go home when they are flushed.  Returns how many. */
unsigned borrow_blocks(const struct owner *borrower, unsigned class, void **blocks,
                       unsigned wanted);

/* Sees to it that a wholly free slab of the class which waits in another owner's queue goes to the pool. */
void borrow_release_slab(const struct owner *borrower, unsigned class);

#endif
