#include "named/named_samples.h"

#include "named/named_slabs.h"

/* Another one after a fork that found it half changed. */
static ATOMIC(struct hak_heap *) samples;

static struct hak_heap *samples_heap(void) {
  struct hak_heap *heap = load_acquire(&samples); /* its fields; pairs with the CAS below */
  if (LIKELY(heap && named_serves(heap))) return heap;
  struct hak_heap *made = named_make(NAMED_OF_SAMPLES, NULL);
  if (!made || cas_strong_acq_rel(&samples, &heap, made)) return made; /* release: its fields */
  named_drop(made); /* another thread made one first */
  return heap;
}

void *named_samples_take(unsigned class) {
  struct hak_heap *heap = samples_heap();
  if (!heap) return NULL;
  struct hak_heap *part = named_enter_any(heap);
  bool went_beyond = false;
  void *block = named_slabs_take(part, class, &went_beyond);
  named_leave(part);
  return block;
}
