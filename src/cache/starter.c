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

/* The process's first thread never shares. Fitted classes are Tiny or not by their size. */
RESIDENT static bool may_share(const struct heap *heap, unsigned class) {
  return !load_relaxed(&heap->owner.bins[class].slab_count) &&
         class_bytes(class) <= TINY_MAX_BYTES && heap->owner.number != FIRST_HEAP_NUMBER &&
         os_is_multi_threaded();
}

/* The holder needs less than a microsecond, or was preempted: then it gets this thread's processor a few times. Waiting until it comes
 * would let a thousand threads run in turns, or yield to each other for a minute. */
RESIDENT static bool starter_latch(struct heap *shared) {
  enum { SPINS = 64, YIELDS = 8 };
  for (unsigned attempt = 0; !latch_try(&shared->owner); attempt++) {
    if (attempt == SPINS + YIELDS) return false;
    attempt < SPINS ? cpu_relax() : os_yield();
  }
  owner_note_work(&shared->owner);
  return true;
}

RESIDENT struct heap *starter_enter(const struct heap *heap, unsigned class) {
  if (!may_share(heap, class)) return NULL;
  struct heap *shared = starter_if_any();
  if (!shared) shared = make_starter();
  return shared && starter_latch(shared) ? shared : NULL;
}

RESIDENT struct slab *starter_take_along(struct heap *heap, unsigned class) {
  struct heap *shared = may_share(heap, class) ? starter_if_any() : NULL;
  if (!shared || !latch_try(&shared->owner)) return NULL;
  struct slab *slab = adopt_from_shared(&shared->owner, &heap->owner, class);
  latch_give(&shared->owner);
  return slab;
}

void starter_after_fork(void) { store_relaxed(&starter, NULL); } /* the child has one thread */
