/* starter.h: a heap that all threads share, for the first few Tiny blocks of each.
 *
 * A slab of its own for each class that a thread touches costs a page each, whether the thread goes on or sleeps for ever: a thousand
 * threads that did a little cost 89 KiB each (docs/decisions/0011). So while a thread's magazine of a class is closed (cache/capacity.h)
 * its blocks come one by one from slabs that all threads share, and go back there; a thread that asks for more gets its own slab, the
 * shared one if that has room. The process's first thread always uses its own.
 *
 * A thread that finds the latch taken for long is served as if there were no starter heap. */
#ifndef HAK_CACHE_STARTER_H
#define HAK_CACHE_STARTER_H

#include "cache/heap.h"

/* The starter heap, with its latch, for a heap whose magazine of the class is closed; NULL when that is to take from its own slabs. */
struct heap *starter_enter(const struct heap *heap, unsigned class);
/* For a heap that has had its share of a class: makes the starter heap's slab its own and current, or returns
 * NULL. Blocks of that slab that other threads hold come back to the new owner. Wants the heap's latch. */
struct slab *starter_take_along(struct heap *heap, unsigned class);

/* In a forked child: the starter heap's heap is treated like that of a thread that the fork did not copy. */
void starter_after_fork(void);

#endif
