/* starter.h: heaps without a thread, from whose slabs new threads take the blocks of their first
 * calls (heap/thread.h).
 *
 * A record, and a slab for each class that a thread touches, cost pages: 89 KiB for each of a
 * thousand threads that did a little (docs/decisions/0011). So all share slabs until they have made
 * some calls. */
#ifndef HAK_CACHE_STARTER_H
#define HAK_CACHE_STARTER_H

#include "cache/heap.h"

/* A starter heap, with its latch; NULL without memory, or while others keep it. */
struct heap *starter_enter(void);
bool starter_is_there(void); /* a thread without a heap has called */
/* Makes a slab of a starter heap the heap's own and current one: its first of the class; or NULL.
 * Wants the heap's latch. */
struct slab *starter_take_along(struct heap *heap, unsigned class);
/* In a forked child: the starter heaps are treated like those of threads that the fork did not
 * copy. */
void starter_after_fork(void);

#endif
