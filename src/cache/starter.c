#include "cache/starter.h"

#include "cache/parked.h"
#include "slab/adopt.h"

/* The number of the heap made first, nearly always that of the process's first thread. */
enum { FIRST_HEAP_NUMBER = 1 };

static ATOMIC(struct heap *) starter;

static struct heap *make_starter(void) {
  struct heap *made = heap_make(), *first = NULL;
  if (!made) return NULL;
  if (cas_strong_acq_rel(&starter, &first, made)) return made; /* release: the new heap */
  parked_add(made);                                            /* another thread made one first */
  return first;
}

/* acquire: the heap that the pointer leads to; pairs with make_starter. */
static struct heap *starter_if_any(void) { return load_acquire(&starter); }

/* The process's first thread never shares. */
static bool may_share(const struct heap *heap, unsigned class) {
  return class < TINY_CLASS_COUNT && !load_relaxed(&heap->owner.bins[class].slab_count) &&
         heap->owner.number != FIRST_HEAP_NUMBER && os_is_multi_threaded();
}

RESIDENT struct heap *starter_enter(const struct heap *heap, unsigned class) {
  if (!may_share(heap, class)) return NULL;
  struct heap *shared = starter_if_any();
  if (!shared) shared = make_starter();
  if (shared) latch_take_shared(&shared->owner);
  return shared;
}

RESIDENT struct slab *starter_take_along(struct heap *heap, unsigned class) {
  struct heap *shared = may_share(heap, class) ? starter_if_any() : NULL;
  if (!shared || !latch_try(&shared->owner)) return NULL;
  struct slab *slab = adopt_from_shared(&shared->owner, &heap->owner, class);
  latch_give(&shared->owner);
  return slab;
}

void starter_after_fork(void) { store_relaxed(&starter, NULL); } /* the child has one thread */
