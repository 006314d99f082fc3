/* flush.h: blocks on their way from magazines to their slabs. */
#ifndef HAK_CACHE_FLUSH_H
#define HAK_CACHE_FLUSH_H

#include "cache/heap.h"

/* Makes room in a full magazine: the older half goes back to where it came from.  Takes the latch. */
void batch_flush(struct heap *heap, unsigned class);

/* Empties one magazine.  Takes the latch. */
void batch_flush_whole(struct heap *heap, unsigned class);

/* Before the system is asked for a SuperSlab (docs/decisions/0022): a magazine of a class that the program has turned away from
 * holds blocks of as many slabs, none of which can go back to the pool.  Empties those of classes that served nothing since
 * the last time, and releases the owner's wholly free slabs.  Takes the latch. */
void flush_resting(struct heap *heap);

#endif
