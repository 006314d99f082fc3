#include "cache/caches.h"

#include "cache/divert.h"
#include "cache/flush.h"
#include "cache/parked.h"
#include "cache/quarantine.h"
#include "ranges/range_magazine.h"
#include "slab/adopt.h"

RESIDENT void caches_empty(struct heap *heap) {
  quarantine_empty(heap);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) batch_flush_whole(heap, class);
  quarantine_flush(heap);
  if (heap->ranges) range_magazines_flush(heap->ranges, &heap->owner.counters);
}

void caches_offer(struct heap *heap) {
  heap_enter(heap);
  caches_empty(heap);
  latch_take(&heap->owner);
  owner_rest(&heap->owner);
  latch_give(&heap->owner);
  heap_leave(heap);
}

void caches_park(struct heap *heap) {
  heap_enter(heap);
  caches_empty(heap);
  divert_disarm(heap);
  heap_leave(heap);
  parked_add(heap);
}
