/* refill.h: moves blocks from slabs to a magazine in batches. */
#ifndef HAK_CACHE_REFILL_H
#define HAK_CACHE_REFILL_H

#include "cache/heap.h"

/* Fills an empty magazine of a slab class; false when there is no memory.  Takes the latch. */
bool batch_refill(struct heap *heap, unsigned class);
/* A block of a slab that all threads share (cache/starter.h), for a request of `bytes`; NULL
 * without memory, or while others keep it. */
void *starter_take(unsigned class, size_t bytes);

#endif
