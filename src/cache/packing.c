#include "cache/packing.h"

#include "cache/class_figures.h"

/* It begins where a quarter of the slabs' bytes is free, this much at least, and ends at an
 * eighth. */
enum { SPARSE_EIGHTHS = 2, DENSE_EIGHTHS = 1, CAPACITY_MIN = 8 };
#define SPARSE_BYTES ((uint64_t)256 << 10)

static uint64_t blocks_of(const struct heap *heap, unsigned class) {
  return (uint64_t)load_relaxed(&heap->owner.bins[class].slab_count) * slab_shapes[class].capacity;
}

/* More may have been flushed than refilled, if other threads' slabs have them: then it is
 * unknown. */
static bool is_sparse(struct heap *heap, unsigned class, unsigned eighths) {
  const struct class_counters *figures = class_figures(heap, class);
  if (!figures) return false;
  uint64_t blocks = blocks_of(heap, class);
  uint64_t refilled = load_relaxed(&figures->refilled_blocks);
  uint64_t flushed = load_relaxed(&figures->flushed_blocks);
  return refilled >= flushed && refilled - flushed < blocks - blocks / 8 * eighths &&
         blocks * class_bytes(class) >= SPARSE_BYTES;
}

void packing_begin_if_sparse(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  if (load_relaxed(&heap->armed) || magazine_capacity(magazine) < CAPACITY_MIN) return;
  if (magazine_is_packing(magazine) || !is_sparse(heap, class, SPARSE_EIGHTHS)) return;
  /* As many batches as hand out all blocks once: a load whose slabs stay as they are pays for no
   * more. */
  uint64_t batches = blocks_of(heap, class) * 2 / magazine_capacity(magazine);
  magazine->streak = batches < UINT8_MAX ? (uint8_t)batches : UINT8_MAX;
  magazine->last_event = MAGAZINE_PACKING;
  magazine_arm(magazine, true);
}

void packing_end_if_dense(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  ASSERT(magazine_is_packing(magazine) && !magazine->passes);
  bool goes_on = magazine->streak-- && is_sparse(heap, class, DENSE_EIGHTHS);
  if (!goes_on) packing_end(magazine);
}

void packing_end(struct magazine *magazine) {
  if (!magazine_is_packing(magazine)) return;
  magazine->passes = 0;
  magazine_arm(magazine, false);
  magazine->last_event = MAGAZINE_IDLE;
  magazine->streak = 0;
}
