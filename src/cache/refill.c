#include "cache/refill.h"

#include "cache/capacity.h"
#include "cache/class_figures.h"
#include "cache/glance.h"
#include "cache/reuse.h"
#include "cache/starter.h"
#include "cache/supply.h"

/* Half the capacity: the other half is room for frees. */
static unsigned batch_size(const struct magazine *magazine) {
  unsigned capacity = magazine_capacity(magazine);
  return capacity < 2 ? 1 : capacity / 2;
}

RESIDENT static void note_batch(struct heap *heap, unsigned class, unsigned taken) {
  struct magazine *magazine = &heap->magazines[class];
  magazine_set_top(magazine, magazine->top + taken);
  if (class < TINY_CLASS_COUNT) reuse_watch(&heap->reuse[class], magazine);
  class_figures_refilled(heap, class, taken);
  count(&heap->owner.counters, COUNT_refills);
  count_add(&heap->owner.counters, COUNT_refilled_blocks, taken);
}

/* Takes a new thread's first blocks of a class from slabs that all threads share; 0 when it is to take from its own. */
static unsigned fill_from_starter(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  struct heap *shared = starter_enter(heap, class);
  if (LIKELY(!shared)) return 0;
  struct supply supply = {.owner = &shared->owner,
                          .class = class,
                          .users = FOR_STARTER,
                          .blocks = magazine->top,
                          .wanted = starter_share(heap, class, magazine_capacity(magazine))};
  unsigned taken = supply_fill(&supply);
  latch_give(&shared->owner);
  if (taken) count(&heap->owner.counters, COUNT_refill_starter);
  return taken;
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
  unsigned taken = fill_from_starter(heap, class);
  if (UNLIKELY(taken)) {
    note_batch(heap, class, taken);
    return true;
  }
  class_figures_need(heap);
  owner_begin_work(&heap->owner);
  glance(heap, class);
  if (class < TINY_CLASS_COUNT) reuse_judge(&heap->reuse[class], &heap->magazines[class]);
  capacity_note_miss(heap, class, MAGAZINE_REFILLED);
  taken = fill(heap, class);
  if (taken) note_batch(heap, class, taken);
  latch_give(&heap->owner);
  return taken != 0;
}
