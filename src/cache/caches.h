/* caches.h: the caches of a heap in front of its slabs: magazines, quarantine. */
#ifndef HAK_CACHE_CACHES_H
#define HAK_CACHE_CACHES_H

#include "cache/heap.h"

/* Empties them all, or all but the quarantine: a burst's end is not to cut short how long a misuse of a freed block can be detected.
 * Both take the latch. */
void caches_empty(struct heap *heap);
void caches_flush(struct heap *heap);
/* Empties them all, and puts what the heap's slabs have free on offer: its thread expects to wait. */
void caches_offer(struct heap *heap);
/* Empties them all and parks the heap, which has no thread from now on. */
void caches_park(struct heap *heap);

#endif
