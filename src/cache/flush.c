#include "cache/flush.h"

#include <string.h>

#include "cache/capacity.h"
#include "cache/class_figures.h"
#include "cache/packing.h"
#include "cache/starter.h"
#include "purge/purge.h"
#include "slab/adopt.h"
#include "slab/batch_free.h"

RESIDENT static void give_away(struct heap *heap, unsigned class, void **blocks,
                               unsigned block_count) {
  struct counters *counters = &heap->owner.counters;
  if (!block_count) return;
  count(counters, COUNT_flushes);
  count_add(counters, COUNT_flushed_blocks, block_count);
  class_figures_add(heap, class, flushed_blocks, block_count);
  batch_free(&heap->owner, blocks, block_count, counters);
}

void *starter_give(unsigned class, void *block) {
  struct heap *shared = starter_enter();
  if (!shared) return NULL;
  give_away(shared, class, &block, 1);
  latch_give(&shared->owner);
  return block;
}

RESIDENT static void flush_from(struct heap *heap, unsigned class, void **first,
                                unsigned block_count) {
  struct magazine *magazine = &heap->magazines[class];
  ASSERT(heap_is_entered(heap) && latch_is_held(&heap->owner));
  size_t rest = (size_t)(magazine->top - first) - block_count;
  give_away(heap, class, first, block_count);
  memmove(first, first + block_count, rest * sizeof(void *));
  magazine_set_top(magazine, first + rest);
}

RESIDENT void batch_flush(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  unsigned kept = 0; /* a batch: beside it all that was freed goes, else the older half */
  owner_begin_work(&heap->owner);
  if (UNLIKELY(magazine_is_packing(magazine)))
    kept = magazine->passes;
  else
    capacity_note_miss(heap, class, MAGAZINE_FLUSHED);
  if (magazine->top == magazine->end) {
    unsigned freed = magazine_count(magazine) - kept;
    flush_from(heap, class, magazine_base(magazine) + kept, kept ? freed : (freed + 1) / 2);
    purge_want(); /* pages may be free now: slab/pages.h */
  }
  latch_give(&heap->owner);
}

RESIDENT void batch_flush_all(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  if (magazine_is_packing(magazine)) magazine->passes = 0;
  flush_from(heap, class, magazine_base(magazine), magazine_count(magazine));
}

RESIDENT void batch_undo_refill(struct heap *heap, unsigned class) {
  owner_begin_work(&heap->owner);
  batch_flush_all(heap, class);
  latch_give(&heap->owner);
}

RESIDENT void batch_flush_whole(struct heap *heap, unsigned class) {
  if (!magazine_count(&heap->magazines[class])) return;
  batch_undo_refill(heap, class);
  purge_want();
}

/* ---- before the process grows ---------------------------------------------------------------- */

RESIDENT void flush_resting(struct heap *heap) {
  count(&heap->owner.counters, COUNT_reliefs);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct bin *bin = &heap->owner.bins[class];
    if (!load_relaxed(&bin->has_served) && magazine_count(&heap->magazines[class]))
      batch_flush_whole(heap, class);
    packing_begin_if_sparse(heap, class);
    store_relaxed(&bin->has_served, false);
  }
  latch_take(&heap->owner);
  owner_drain_all(&heap->owner, PURGE_SLABS_A_STEP);
  latch_give(&heap->owner);
}
