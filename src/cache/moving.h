/* moving.h: a thread moves its blocks closer together, so that slabs become free.
 *
 * A few live blocks keep a slab of 64 KiB; only the program can move them, as only it knows its
 * pointers. It asks which blocks lie in a sparse slab, and replaces those by new ones:
 *
 *   moving_gain   by the slab's count of free blocks, without a lock
 *   malloc        a block of the densest of some listed slabs, which becomes the current one
 *   free          straight to the slab, which goes to the pool, as old, when it is wholly free
 *
 * So blocks go from sparse slabs to the holes of dense ones, and no slab is made while there are
 * holes.  Magazines serve neither call.  The idea is that of jemalloc's defragmentation hint. */
#ifndef HAK_CACHE_MOVING_H
#define HAK_CACHE_MOVING_H

#include "cache/heap.h"

/* How many percent of the block's slab are free; 0 where moving the block gains nothing: less than
 * MOVING_GAIN_MIN are, the slab is its owner's current one, or the block is in no thread's slab. */
enum { MOVING_GAIN_MIN = 3 };
unsigned moving_gain(const void *block);

/* While heap->is_moving: a block of the class, or NULL without memory; frees one.  By the heap's
 * thread, which has entered it.  Take the latch. */
void *moving_take(struct heap *heap, unsigned class);
void moving_give(struct heap *heap, unsigned class, void *block);

#endif
