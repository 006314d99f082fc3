/* caches.h: the caches of a heap in front of its slabs: magazines, quarantine. */
#ifndef HAK_CACHE_CACHES_H
#define HAK_CACHE_CACHES_H

#include "cache/heap.h"

/* Empties them all. Takes the latch. */
void caches_empty(struct heap *heap);
/* Empties them all, and puts what the heap's slabs have free on offer: its thread expects to
 * wait. */
void caches_offer(struct heap *heap);
/* Empties them all and parks the heap, which has no thread from now on. */
void caches_park(struct heap *heap);

#endif
