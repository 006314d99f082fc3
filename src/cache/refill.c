#include "cache/refill.h"

#include "cache/capacity.h"
#include "cache/class_figures.h"
#include "cache/flush.h"
#include "cache/glance.h"
#include "cache/packing.h"
#include "cache/starter.h"
#include "cache/supply.h"

/* Half the capacity: the other half is room for frees. */
static unsigned batch_size(const struct magazine *magazine) {
  unsigned capacity = magazine_capacity(magazine);
  return capacity < 2 ? 1 : capacity / 2;
}

RESIDENT static void note_taken(struct heap *heap, unsigned class, unsigned taken) {
  class_figures_add(heap, class, refilled_blocks, taken);
  count(&heap->owner.counters, COUNT_refills);
  count_add(&heap->owner.counters, COUNT_refilled_blocks, taken);
}

void *starter_take(unsigned class, size_t bytes) {
  void *block = NULL;
  class = slab_class_of(class_bytes(class), CACHE_LINE_BYTES); /* no line is another thread's */
  struct heap *shared = starter_enter();
  if (!shared) return NULL;
  struct supply supply = {
      .owner = &shared->owner, .class = class, .users = FOR_STARTER, .blocks = &block, .wanted = 1};
  class_figures_need(shared);
  if (supply_fill(&supply)) {
    note_taken(shared, class, 1);
    class_figures_sampled(shared, class, bytes);
    count(&shared->owner.counters, COUNT_refill_starter);
  }
  latch_give(&shared->owner);
  return block;
}

static unsigned fill(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  struct supply supply = {.owner = &heap->owner,
                          .heap = heap,
                          .class = class,
                          .users = FOR_MAGAZINE,
                          .blocks = magazine->top,
                          .wanted = batch_size(magazine)};
  return supply_fill(&supply);
}

RESIDENT bool batch_refill(struct heap *heap, unsigned class) {
  ASSERT(heap_is_entered(heap));
  class_figures_need(heap);
  owner_begin_work(&heap->owner);
  glance(heap, class);
  struct magazine *magazine = &heap->magazines[class];
  if (UNLIKELY(magazine_is_packing(magazine))) {
    packing_end_if_dense(heap, class);
    batch_flush_all(heap, class); /* blocks freed since the last batch */
  } else {
    capacity_note_miss(heap, class, MAGAZINE_REFILLED);
  }
  unsigned taken = fill(heap, class);
  magazine_set_top(magazine, magazine->top + taken);
  if (taken) note_taken(heap, class, taken);
  if (UNLIKELY(magazine_is_packing(magazine))) magazine->passes = (uint16_t)taken;
  latch_give(&heap->owner);
  return taken != 0;
}
