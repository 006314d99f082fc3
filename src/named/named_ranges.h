/* named_ranges.h: a named heap's Large and Big blocks: ranges that it lists.  All are counted as Big ones. */
#ifndef HAK_NAMED_NAMED_RANGES_H
#define HAK_NAMED_NAMED_RANGES_H

#include "named/named_heap.h"

/* Makes a live Big block the heap's.  Under the latch. */
void named_ranges_add(struct hak_heap *heap, uintptr_t block);

/* Frees what is a block by its entry in the owner map; says so when it is free already. */
void named_ranges_give(struct hak_heap *heap, uintptr_t block, struct counters *counters);

/* Changes the size of a live one in place, as resize_in_place does, as far as the limit allows. */
bool named_ranges_resize(struct hak_heap *heap, uintptr_t block, size_t size,
                         struct counters *counters);

/* Frees all.  Under the latch. */
void named_ranges_give_all(struct hak_heap *heap, struct counters *counters);

#endif
