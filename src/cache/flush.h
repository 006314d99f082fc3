/* flush.h: blocks on their way from magazines to their slabs (T3). */
#ifndef HAK_CACHE_FLUSH_H
#define HAK_CACHE_FLUSH_H

#include "cache/heap.h"

/* Makes room in a full magazine: the older half goes back to where it came from.  Takes the latch. */
void batch_flush(struct heap *heap, unsigned class);

/* Empties one magazine.  Takes the latch. */
void batch_flush_whole(struct heap *heap, unsigned class);

#endif
