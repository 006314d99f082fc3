#include "cache/heap.h"

RESIDENT_IN_PART const struct heap empty_heap = {.tag = MAP_TAG_UNOWNED};
const struct heap ended_heap = {.tag = MAP_TAG_UNOWNED};
RARE_DATA struct counters stray_counters;

/* Nothing is ever written through the pointer while it leads to a constant heap. */
THREAD_LOCAL struct heap *heap_of_thread = (struct heap *)(uintptr_t)&empty_heap;

bool heap_is_valid(const struct heap *heap) {
  int64_t capacity_bytes = 0;
  bool is_armed = load_relaxed(&heap->armed);
  if (heap->used && !heap_is_armed_by(heap, ARMED_BY_USE)) return false;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    const struct magazine *magazine = &heap->magazines[class];
    bool may_be_armed = is_armed || magazine_is_packing(magazine);
    if (!magazine_is_valid(magazine) || (magazine_is_armed(magazine) && !may_be_armed))
      return false;
    capacity_bytes += (int64_t)(magazine_capacity(magazine) * class_bytes(class));
  }
  return capacity_bytes == heap->capacity_bytes;
}
