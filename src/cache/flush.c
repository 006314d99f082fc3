#include "cache/flush.h"

#include <string.h>

#include "cache/capacity.h"
#include "cache/class_figures.h"
#include "pool/purge.h"
#include "slab/adopt.h"
#include "slab/batch_free.h"

static void give_away(struct heap *heap, unsigned class, void **blocks, unsigned block_count) {
  struct counters *counters = &heap->owner.counters;
  if (!block_count) return;
  count(counters, COUNT_flushes);
  count_add(counters, COUNT_flushed_blocks, block_count);
  class_figures_flushed(heap, class, block_count);
  batch_free(&heap->owner, blocks, block_count, counters);
}

RESIDENT static void flush_oldest(struct heap *heap, unsigned class, unsigned block_count) {
  struct magazine *magazine = &heap->magazines[class];
  ASSERT(heap_is_entered(heap) && latch_is_held(&heap->owner));
  unsigned rest = magazine_count(magazine) - block_count;
  void **base = magazine_base(magazine);
  give_away(heap, class, base, block_count);
  memmove(base, base + block_count, rest * sizeof(void *));
  magazine_set_top(magazine, base + rest);
}

RESIDENT void batch_flush(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  owner_begin_work(&heap->owner);
  capacity_note_miss(heap, class, MAGAZINE_FLUSHED);
  if (magazine->top == magazine->end) {
    flush_oldest(heap, class, (magazine_count(magazine) + 1) / 2);
    purge_want(); /* pages may be free now: slab/pages.h */
  }
  latch_give(&heap->owner);
}

RESIDENT void batch_undo_refill(struct heap *heap, unsigned class) {
  owner_begin_work(&heap->owner);
  flush_oldest(heap, class, magazine_count(&heap->magazines[class]));
  latch_give(&heap->owner);
}

RESIDENT void batch_flush_whole(struct heap *heap, unsigned class) {
  if (!magazine_count(&heap->magazines[class])) return;
  batch_undo_refill(heap, class);
  purge_want();
}

/* ---- before the process grows ---------------------------------------------------------------------------------- */

RESIDENT void flush_resting(struct heap *heap) {
  count(&heap->owner.counters, COUNT_reliefs);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct bin *bin = &heap->owner.bins[class];
    if (!load_relaxed(&bin->has_served) && magazine_count(&heap->magazines[class]))
      batch_flush_whole(heap, class);
    store_relaxed(&bin->has_served, false);
  }
  latch_take(&heap->owner);
  owner_drain_all(&heap->owner, PURGE_SLABS_A_STEP);
  latch_give(&heap->owner);
}
