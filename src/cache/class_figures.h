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

/* Adds to a counter of the class, if the heap has any. */
#define class_figures_add(heap, class, counter, amount)                    \
  do {                                                                     \
    struct class_counters *figures_ = class_figures(heap, class);          \
    if (LIKELY(figures_)) add_single_writer(&figures_->counter, (amount)); \
  } while (0)

/* A request that missed the magazine, for `bytes`. */
INLINE void class_figures_sampled(struct heap *heap, unsigned class, size_t bytes) {
  class_figures_add(heap, class, sampled_requests, 1);
  class_figures_add(heap, class, sampled_bytes, bytes);
}

#endif
