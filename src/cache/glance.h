/* glance.h: a check of a few blocks that were freed a moment ago.
 *
 * Free's fast path does not check its pointer; a flush checks every block.  Before a heap flushes
 * anything, and in a small program that is not before its end, refills glance at the youngest
 * blocks of the magazine that was refilled before theirs. */
#ifndef HAK_CACHE_GLANCE_H
#define HAK_CACHE_GLANCE_H

#include "cache/heap.h"

/* The first refills of a heap check blocks so: in the long run that costs nothing. */
enum { GLANCES_MAX = 256 };

/* Called before the magazine of `class` is refilled, with the latch. A wrong block is reported and
 * leaves its magazine. */
void glance(struct heap *heap, unsigned class);

#endif
