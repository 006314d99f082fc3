/* parked.h: heaps without a thread: new ones, and those whose threads have ended. They wait for new
 * threads and are never unmapped. */
#ifndef HAK_CACHE_PARKED_H
#define HAK_CACHE_PARKED_H

#include "cache/heap.h"

/* A new heap, without a thread yet; NULL without memory. */
struct heap *heap_make(void);

/* Parks a heap whose caches are empty. */
void parked_add(struct heap *heap);
/* Takes over a parked heap; NULL when there is none. */
struct heap *parked_take(void);

/* In a forked child: whether the heap, which is not parked, has been taken over since. */
bool parked_was_taken_here(const struct heap *heap);

/* Called in a forked child while it has one thread, when the lost heaps are known. */
void parked_after_fork(void);

#endif
