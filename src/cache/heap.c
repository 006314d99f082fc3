#include "cache/heap.h"

RESIDENT_IN_PART const struct heap empty_heap = {.tag = MAP_TAG_UNOWNED};
const struct heap ended_heap = {.tag = MAP_TAG_UNOWNED};
struct counters stray_counters;

/* Nothing is ever written through the pointer while it leads to a constant heap. */
THREAD_LOCAL struct heap *heap_of_thread = (struct heap *)(uintptr_t)&empty_heap;
