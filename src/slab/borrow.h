/* borrow.h: uses blocks freed into other owners' slabs and not yet collected, before memory that
 * was never touched.
 *
 * A thread's need of a class varies, so while one touches fresh pages, blocks of the same class
 * wait in the queues of others. Only blocks change hands, or slabs that are wholly free: an owner
 * does not lose a slab that it works with, as it would by adoption.
 *
 * The borrower holds its own latch and tries the other's, as adopters do. */
#ifndef HAK_SLAB_BORROW_H
#define HAK_SLAB_BORROW_H

#include "slab/owner.h"

/* Takes up to `wanted` blocks of the class that were freed into other owners' slabs; they stay
 * those slabs' and return to them when they are flushed. Returns their number. */
unsigned borrow_blocks(const struct owner *borrower, unsigned class, void **blocks,
                       unsigned wanted);

#endif
