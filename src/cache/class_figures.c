#include "cache/class_figures.h"

#include "map/metadata.h"

RESIDENT void class_figures_make(struct heap *heap) {
  struct class_counters *figures = metadata_allocate(CLASS_COUNT * sizeof *figures);
  /* release: zeroes before the address; pairs with readers in observe/. */
  if (figures) store_release(&heap->class_counters, figures);
}
