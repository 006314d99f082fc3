/* new_heap.h: heaps are made here; they are never unmapped. */
#ifndef HAK_CACHE_NEW_HEAP_H
#define HAK_CACHE_NEW_HEAP_H

#include "cache/heap.h"

/* Sets memory aside for the first heap's record, so that it lies before the pool's; false without memory. */
bool new_heap_init(void);

/* A new heap, of nobody yet; NULL without memory. */
struct heap *heap_make(void);

#endif
