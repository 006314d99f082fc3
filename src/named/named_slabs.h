/* named_slabs.h: a named heap's blocks of slab classes. */
#ifndef HAK_NAMED_NAMED_SLABS_H
#define HAK_NAMED_NAMED_SLABS_H

#include "named/named_heap.h"

/* A block of the class, or NULL without memory.  Under the latch. */
void *named_slabs_take(struct hak_heap *heap, unsigned class);

/* Frees what is a block by its entry in the owner map; says so when it is none, or free already.  `counters` are of the thread
 * that frees. */
void named_slabs_give(struct hak_heap *heap, void *block, struct counters *counters);

/* Frees all.  Under the latch. */
void named_slabs_give_all(struct hak_heap *heap);

#endif
