#include "cache/starter.h"

#include "cache/new_heap.h"
#include "cache/parked.h"
#include "cache/supply.h"
#include "slab/batch_free.h"
#include "slab/slab.h"

/* Batches of 1, 1, 2, 2, 4, 4 … blocks of a class that a thread gets from the starter heap. */
enum { STARTER_BATCHES_MAX = 6 };
/* The number of the heap made first, nearly always that of the process's first thread. */
enum { FIRST_HEAP_NUMBER = 1 };

static ATOMIC(struct heap *) starter;

static struct heap *make_starter(void) {
  struct heap *made = heap_make(), *first = NULL;
  if (!made) return NULL;
  if (cas_strong_acq_rel(&starter, &first, made)) return made; /* release: what heap_make wrote */
  parked_add(made);                                            /* another thread was faster */
  return first;
}

/* acquire: the heap behind the pointer; pairs with make_starter. */
static struct heap *starter_if_any(void) { return load_acquire(&starter); }

static bool is_new_to(const struct heap *heap, unsigned class) {
  return class < TINY_CLASS_COUNT && heap->starter_batches[class] < STARTER_BATCHES_MAX &&
         !load_relaxed(&heap->owner.bins[class].slab_count) &&
         heap->owner.number != FIRST_HEAP_NUMBER && os_is_multi_threaded();
}

/* The holder needs less than a microsecond, or a time slice if it was preempted: then this thread goes without. */
RESIDENT static bool enter(struct heap *shared) {
  enum { SPINS = 256 };
  for (unsigned spin = 0; spin < SPINS; spin++, cpu_relax())
    if (latch_try(&shared->owner)) {
      owner_note_work(&shared->owner);
      return true;
    }
  return false;
}

RESIDENT unsigned starter_take(struct heap *heap, unsigned class, void **blocks, unsigned room) {
  if (!is_new_to(heap, class)) return 0;
  struct heap *shared = starter_if_any();
  if (!shared) shared = make_starter();
  if (!shared || !enter(shared)) return 0;
  struct slab *slab = shared->owner.bins[class].current;
  if (!slab || !slab->free_local) slab = supply_pass(&shared->owner, class);
  unsigned wanted = 1u << heap->starter_batches[class] / 2;
  if (wanted > room) wanted = room;
  unsigned taken = slab ? slab_take(slab, &shared->owner, blocks, wanted) : 0;
  latch_give(&shared->owner);
  heap->starter_batches[class]++;
  return taken;
}

static bool has_outgrown(const struct heap *heap, unsigned class) {
  return class < TINY_CLASS_COUNT && heap->starter_batches[class] == STARTER_BATCHES_MAX &&
         !load_relaxed(&heap->owner.bins[class].slab_count);
}

RESIDENT struct slab *starter_take_along(struct heap *heap, unsigned class) {
  struct heap *shared = has_outgrown(heap, class) ? starter_if_any() : NULL;
  return shared ? supply_take_along(&heap->owner, &shared->owner, class) : NULL;
}

RESIDENT bool starter_give(uint32_t entry, void *block) {
  struct heap *shared = starter_if_any();
  if (!shared || (entry & ~MAP_CLASS_MASK) != shared->owner.tag || !enter(shared)) return false;
  batch_free(&shared->owner, &block, 1, &shared->owner.counters);
  latch_give(&shared->owner);
  return true;
}

RESIDENT void starter_after_fork(void) {
  store_relaxed(&starter, NULL);
} /* the child has one thread */
