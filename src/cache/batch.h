/* batch.h: moving blocks between magazines and slabs, many at a time (T3). */
#ifndef HAK_CACHE_BATCH_H
#define HAK_CACHE_BATCH_H

#include "cache/heap.h"

/* Fills an empty magazine of a slab class; false when there is no memory.  Takes the latch. */
bool batch_refill(struct heap *heap, unsigned class);

/* Makes room in a full magazine: the older half goes back to where it came from.  Takes the latch. */
void batch_flush(struct heap *heap, unsigned class);

/* Empties one magazine / everything the heap holds in front of its slabs.  Takes the latch. */
void batch_flush_whole(struct heap *heap, unsigned class);
void batch_flush_all(struct heap *heap);

/* Gives one Large block back to its tier; ends the program when it is none, or free already. */
void batch_give_large(struct heap *heap, void *block);

/* Frees blocks of any slabs: those of `owner` (whose latch is held; may be NULL for nobody) without
 * atomics, the others remotely. */
void batch_free(struct owner *owner, void **blocks, unsigned count, struct counters *counters);

#endif
