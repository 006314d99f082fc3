/* named_ranges.h: a named heap's Large and Big blocks: ranges that it lists.  All are counted as
 * Big ones. */
#ifndef HAK_NAMED_NAMED_RANGES_H
#define HAK_NAMED_NAMED_RANGES_H

#include "named/named_heap.h"

/* The owner-map entry of the heap's ranges. */
INLINE uint32_t named_range_entry(const struct hak_heap *heap) {
  return map_entry(heap->owner.tag, MAP_CLASS_BIG);
}

/* Makes a live Big block the heap's; false when it is not live any more. Under the latch. */
bool named_ranges_add(struct hak_heap *heap, uintptr_t block);

/* The reverse: the block leaves the heap as a live Big block, which the caller frees. False, after
 * a report, when no block of the heap begins there any more. */
bool named_ranges_remove(struct hak_heap *heap, uintptr_t block);
/* Removes one of its ranges; 0 when it has none. Under the latch. */
uintptr_t named_ranges_remove_any(struct hak_heap *heap);

/* Changes the size of a live one in place, as resize_in_place does, as far as the limit allows. */
bool named_ranges_resize(struct hak_heap *heap, uintptr_t block, size_t size,
                         struct counters *counters);

#endif
