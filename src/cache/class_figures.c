#include "cache/class_figures.h"

#include "map/metadata.h"

static struct class_counters *allocate(void) {
  return metadata_allocate(CLASS_COUNT * sizeof(struct class_counters));
}

/* The first heap's, until it wants them. */
static ATOMIC(struct class_counters *) first_figures;

RESIDENT void class_figures_init(void) {
  if (!load_relaxed(&first_figures)) store_relaxed(&first_figures, allocate());
}

RESIDENT void class_figures_make(struct heap *heap) {
  /* acquire: zeroes, as metadata_allocate gives them; one heap gets it. */
  struct class_counters *figures = exchange_acquire(&first_figures, NULL);
  if (!figures) figures = allocate();
  /* release: zeroes before the address; pairs with a reader's look in observe/. */
  if (figures) store_release(&heap->class_counters, figures);
}
