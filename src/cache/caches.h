/* caches.h: all that a heap keeps in front of its slabs: magazines, remote-free buffer, quarantine. */
#ifndef HAK_CACHE_CACHES_H
#define HAK_CACHE_CACHES_H

#include "cache/heap.h"

/* Empties them all; or all but what waits in the quarantine, so that a burst's end does not cut short how long a misuse of
 * it can be found.  Both take the latch. */
void caches_empty(struct heap *heap);
void caches_flush(struct heap *heap);
/* The same, and parks the heap: it is nobody's from now on. */
void caches_park(struct heap *heap);

#endif
