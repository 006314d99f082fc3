/* starter.h: a heap that all threads share, for the first few Tiny blocks of each.
 *
 * A slab of its own for each class that a thread touches costs a page each, whether the thread goes on or sleeps for ever: a thousand
 * threads that did a little cost 89 KiB each (docs/decisions/0011).  So a new thread's first blocks of a class, 14 at most, come from
 * slabs that all threads share, and go back there one by one; a thread that asks for more gets its own slab, the shared one if that has
 * room.  The process's first thread always uses its own.
 *
 * A thread that finds the latch taken for long is served as if there were no starter heap. */
#ifndef HAK_CACHE_STARTER_H
#define HAK_CACHE_STARTER_H

#include "cache/heap.h"

/* The starter heap, with its latch, for a heap that is new to the class; NULL when that is to take from its own slabs. */
struct heap *starter_enter(const struct heap *heap, unsigned class);
/* The number of blocks that the heap gets there this time, `room` at most. */
unsigned starter_share(struct heap *heap, unsigned class, unsigned room);

/* Takes a block back if its owner map entry says that it is the starter heap's. */
bool starter_give(uint32_t entry, void *block);

/* For a heap that has had its share of a class from the starter heap: makes the starter heap's slab its own and current, or returns
 * NULL. Blocks of that slab that other threads hold come back to the new owner. Wants the heap's latch. */
struct slab *starter_take_along(struct heap *heap, unsigned class);

/* In a forked child: the starter heap's heap is treated like that of a thread that the fork did not copy. */
void starter_after_fork(void);

#endif
