/* named_ranges.h: a named heap's Large and Big blocks: ranges that it lists.  All are counted as Big ones. */
#ifndef HAK_NAMED_NAMED_RANGES_H
#define HAK_NAMED_NAMED_RANGES_H

#include "named/named_heap.h"

/* Of the heap's ranges in the owner map. */
INLINE uint32_t named_range_entry(const struct hak_heap *heap) {
  return heap->owner.number << MAP_TAG_SHIFT | MAP_CLASS_NAMED_RANGE;
}

/* Makes a live Big block the heap's; false when it is none any more.  Under the latch. */
bool named_ranges_add(struct hak_heap *heap, uintptr_t block);

/* The same back: what is the heap's by its entry in the owner map is a live Big block of nobody, which the caller frees.  False,
 * after a word, when no block of the heap begins there any more. */
bool named_ranges_remove(struct hak_heap *heap, uintptr_t block);
/* Any of them; 0: there is none.  Under the latch. */
uintptr_t named_ranges_remove_any(struct hak_heap *heap);

/* Changes the size of a live one in place, as resize_in_place does, as far as the limit allows. */
bool named_ranges_resize(struct hak_heap *heap, uintptr_t block, size_t size,
                         struct counters *counters);

#endif
