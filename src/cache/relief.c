#include "cache/relief.h"

#include "cache/flush.h"
#include "slab/adopt.h"

RESIDENT bool relief_is_possible(const struct heap *heap) {
  return load_relaxed(&heap->owner.bytes_out) > 0;
}

RESIDENT void relief_give(struct heap *heap) {
  count(&heap->owner.counters, COUNT_reliefs);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct bin *bin = &heap->owner.bins[class];
    if (!bin->has_served) batch_flush_whole(heap, class);
    bin->has_served = false;
  }
  latch_take(&heap->owner);
  owner_drain_all(&heap->owner);
  latch_give(&heap->owner);
}
