/* figures.h: the figures of a heap that the program has made. */
#ifndef TESTS_API_FIGURES_H
#define TESTS_API_FIGURES_H

#include "hakmem/hakmem.h"

static inline struct hak_figures figures_of(hak_heap *heap) {
  struct hak_figures figures;
  hak_heap_figures(heap, &figures, sizeof figures);
  return figures;
}

#endif
