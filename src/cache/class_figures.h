/* class_figures.h: a heap's counters of each class (base/counters.def): blocks that pass between
 * its magazines and its slabs or ranges, and the bytes of requests that missed. Called on slow
 * paths, by the heap's thread and by a thread that sweeps it under its latch. */
#ifndef HAK_CACHE_CLASS_FIGURES_H
#define HAK_CACHE_CLASS_FIGURES_H

#include "cache/heap.h"

/* Gives the heap its counters, if it has none; nothing happens without memory. */
void class_figures_make(struct heap *heap);
INLINE void class_figures_need(struct heap *heap) {
  if (UNLIKELY(!load_relaxed(&heap->class_counters))) class_figures_make(heap);
}

INLINE struct class_counters *class_figures(struct heap *heap, unsigned class) {
  /* relaxed: made by the thread that counts, or before it handed the heap over. */
  struct class_counters *figures = load_relaxed(&heap->class_counters);
  return figures ? &figures[class] : NULL;
}

INLINE void class_figures_refilled(struct heap *heap, unsigned class, unsigned blocks) {
  struct class_counters *figures = class_figures(heap, class);
  if (LIKELY(figures)) add_single_writer(&figures->refilled_blocks, blocks);
}

INLINE void class_figures_flushed(struct heap *heap, unsigned class, unsigned blocks) {
  struct class_counters *figures = class_figures(heap, class);
  if (LIKELY(figures)) add_single_writer(&figures->flushed_blocks, blocks);
}

/* A request that missed the magazine, for `bytes`. */
INLINE void class_figures_sampled(struct heap *heap, unsigned class, size_t bytes) {
  struct class_counters *figures = class_figures(heap, class);
  if (UNLIKELY(!figures)) return;
  add_single_writer(&figures->sampled_requests, 1);
  add_single_writer(&figures->sampled_bytes, bytes);
}

/* Blocks counted in advance as handed out while a heap profile is on; the rest of a dropped lot is
 * subtracted. */
INLINE void class_figures_profiled(struct heap *heap, unsigned class, int64_t blocks) {
  struct class_counters *figures = class_figures(heap, class);
  if (LIKELY(figures)) add_single_writer(&figures->profiled_blocks, (uint64_t)blocks);
}

#endif
