/* parked.h: heaps that are nobody's: new ones, and those whose threads have ended and that wait for new ones.  They are
 * never unmapped. */
#ifndef HAK_CACHE_PARKED_H
#define HAK_CACHE_PARKED_H

#include "cache/heap.h"

/* A new heap, of nobody yet; NULL without memory. */
struct heap *heap_make(void);

/* Puts a heap by whose caches are empty. */
void parked_add(struct heap *heap);
/* One that is taken over; NULL when there is none. */
struct heap *parked_take(void);

/* In a forked child: whether the heap, which is not parked, has been taken over since. */
bool parked_was_taken_here(const struct heap *heap);

/* In a forked child, while it has one thread, and it is known which heaps are lost. */
void parked_after_fork(void);

#endif
