/* flush.h: moves blocks from magazines to their slabs. */
#ifndef HAK_CACHE_FLUSH_H
#define HAK_CACHE_FLUSH_H

#include "cache/heap.h"

/* Makes room in a full magazine: the older half goes back to its slabs.  Takes the latch. */
void batch_flush(struct heap *heap, unsigned class);

/* Empties one magazine.  Takes the latch. */
void batch_flush_whole(struct heap *heap, unsigned class);

/* batch_flush_whole under the latch. */
void batch_flush_all(struct heap *heap, unsigned class);

/* batch_flush_whole for blocks that a refill has just brought: no page becomes free. */
void batch_undo_refill(struct heap *heap, unsigned class);
/* Gives one block to its slab by a starter heap (cache/starter.h), and returns it; NULL while other
 * threads hold all of those. */
void *starter_give(unsigned class, void *block);

/* Before the system is asked for a SuperSlab (docs/decisions/0022): a magazine of a class that the
 * program no longer uses can hold a block of each of many slabs, which keeps them from the pool.
 * Empties those of classes that served nothing since the last time, and releases the owner's wholly
 * free slabs.  Takes the latch. */
void flush_resting(struct heap *heap);

#endif
