#include "cache/flush.h"

#include <string.h>

#include "cache/capacity.h"
#include "cache/class_figures.h"
#include "cache/reuse.h"
#include "guard/pointer.h"
#include "large/large.h"
#include "pool/purge.h"
#include "slab/adopt.h"
#include "slab/batch_free.h"

/* What a magazine took on trust is looked at before it goes. */
RESIDENT void batch_give_large(struct heap *heap, void *block) {
  uintptr_t address = (uintptr_t)block;
  uint32_t entry = owner_map_entry(address);
  if (UNLIKELY(!map_entry_is_live(entry) || !range_block_begins_at(address))) {
    pointer_fail("free", address);
    return;
  }
  heap->large_bytes_out -= (int64_t)class_bytes(entry & MAP_CLASS_MASK);
  class_figures_flushed(heap, entry & MAP_CLASS_MASK, 1);
  large_give(address, &heap->owner.counters);
}

static void give_away(struct heap *heap, unsigned class, void **blocks, unsigned block_count) {
  struct counters *counters = &heap->owner.counters;
  if (!block_count) return;
  count(counters, COUNT_flushes);
  count_add(counters, COUNT_flushed_blocks, block_count);
  if (class < SLAB_CLASS_COUNT) {
    class_figures_flushed(heap, class, block_count);
    batch_free(&heap->owner, blocks, block_count, counters);
    purge_want(); /* pages may be free now: slab/pages.h */
    return;
  }
  for (unsigned index = 0; index < block_count; index++) batch_give_large(heap, blocks[index]);
}

RESIDENT static void flush_oldest(struct heap *heap, unsigned class, unsigned block_count) {
  struct magazine *magazine = &heap->magazines[class];
  ASSERT(heap_is_entered(heap) && latch_is_held(&heap->owner));
  unsigned rest = magazine_count(magazine) - block_count;
  give_away(heap, class, magazine->base, block_count);
  memmove(magazine->base, magazine->base + block_count, rest * sizeof(void *));
  magazine->top = magazine->base + rest;
}

RESIDENT void batch_flush(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  owner_begin_work(&heap->owner);
  if (class < TINY_CLASS_COUNT) reuse_note_flush(&heap->reuse[class], magazine);
  capacity_note_flush(heap, class);
  if (magazine->top == magazine->end) flush_oldest(heap, class, (magazine_count(magazine) + 1) / 2);
  latch_give(&heap->owner);
}

RESIDENT void batch_flush_whole(struct heap *heap, unsigned class) {
  unsigned block_count = magazine_count(&heap->magazines[class]);
  if (!block_count) return;
  owner_begin_work(&heap->owner);
  flush_oldest(heap, class, block_count);
  latch_give(&heap->owner);
}

/* ---- before the process grows ---------------------------------------------------------------------------------- */

RESIDENT void flush_resting(struct heap *heap) {
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

RESIDENT void flush_large(struct heap *heap) {
  count(&heap->owner.counters, COUNT_reliefs);
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++)
    batch_flush_whole(heap, class);
}
