#include "cache/refill.h"

#include "cache/capacity.h"
#include "cache/class_figures.h"
#include "cache/glance.h"
#include "cache/relief.h"
#include "cache/reuse.h"
#include "cache/starter.h"
#include "cache/supply.h"
#include "slab/slab.h"

/* Half the capacity: the other half is room for frees. */
static unsigned batch_size(const struct magazine *magazine) {
  unsigned capacity = magazine_capacity(magazine);
  return capacity < 2 ? 1 : capacity / 2;
}

RESIDENT static void note_batch(struct heap *heap, unsigned class, unsigned taken) {
  heap->magazines[class].top += taken;
  if (class < TINY_CLASS_COUNT) reuse_watch(&heap->reuse[class], &heap->magazines[class]);
  class_figures_refilled(heap, class, taken);
  count(&heap->owner.counters, COUNT_refills);
  count_add(&heap->owner.counters, COUNT_refilled_blocks, taken);
}

/* Blocks of other heaps' slabs, before fresh pages are touched.  Mid ones only: to free them costs the same
 * whose they are, a Tiny one would take the long way at each free (docs/decisions/0002). */
static unsigned borrow(struct heap *heap, unsigned class) {
  enum { MOST = 8 };
  if (class < TINY_CLASS_COUNT) return 0;
  struct magazine *magazine = &heap->magazines[class];
  unsigned wanted = batch_size(magazine);
  return supply_borrow(&heap->owner, class, magazine->top, wanted < MOST ? wanted : MOST);
}

/* Behind those that the magazine has got already. */
RESIDENT static unsigned take_more(struct heap *heap, struct slab *slab, unsigned taken) {
  struct magazine *magazine = &heap->magazines[slab->class];
  unsigned wanted = slab_batch(slab, batch_size(magazine) - taken);
  return slab_take(slab, &heap->owner, magazine->top + taken, wanted);
}

/* Blocks that have been out before, from several slabs when the first has but a few. */
static unsigned gather(struct heap *heap, unsigned class) {
  struct slab *slab = heap->owner.bins[class].current;
  unsigned wanted = batch_size(&heap->magazines[class]), taken = 0;
  if (slab && slab_reusable(slab)) {
    count(&heap->owner.counters, COUNT_refill_current);
    taken = take_more(heap, slab, 0);
  }
  while (taken * 2 < wanted && (slab = supply_reuse(&heap->owner, class)))
    taken += take_more(heap, slab, taken);
  return taken;
}

/* The system is asked last, when nothing that rests in the thread's own caches helps either. */
static struct slab *touch(struct heap *heap, unsigned class) {
  struct slab *slab = starter_take_along(heap, class);
  if (slab) return slab;
  if (!relief_is_possible(heap)) return supply_touch(&heap->owner, class, AS_FAR_AS_THE_SYSTEM);
  slab = supply_touch(&heap->owner, class, WITHIN_POOL);
  if (LIKELY(slab)) return slab;
  latch_give(&heap->owner);
  relief_give(heap);
  owner_begin_work(&heap->owner);
  return supply_pass(&heap->owner, class);
}

/* From where memory has been used, then from where it has not. */
static unsigned fill(struct heap *heap, unsigned class) {
  unsigned taken = gather(heap, class);
  if (!taken) taken = borrow(heap, class);
  if (taken) return taken;
  struct slab *slab = touch(heap, class);
  return slab ? take_more(heap, slab, 0) : 0;
}

RESIDENT bool batch_refill(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  unsigned shared = starter_take(heap, class, magazine->top, magazine_capacity(magazine));
  if (UNLIKELY(shared)) {
    count(&heap->owner.counters, COUNT_refill_starter);
    note_batch(heap, class, shared);
    return true;
  }
  class_figures_need(heap);
  owner_begin_work(&heap->owner);
  glance(heap, class);
  if (class < TINY_CLASS_COUNT) reuse_judge(&heap->reuse[class], magazine);
  capacity_note_refill(heap, class);
  unsigned taken = fill(heap, class);
  if (taken) note_batch(heap, class, taken);
  latch_give(&heap->owner);
  return taken != 0;
}
