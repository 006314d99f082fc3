#include "cache/starter.h"

#include "cache/parked.h"
#include "slab/adopt.h"

/* The second is made when the holder of the first one's latch was preempted, and so on: a thousand threads may start meanwhile. */
enum { STARTERS = 4, SPINS = 64, YIELDS = 8 };
static ATOMIC(struct heap *) starters[STARTERS];

static struct heap *make_starter(unsigned at) {
  struct heap *made = heap_make(), *first = NULL;
  if (!made || cas_strong_acq_rel(&starters[at], &first, made)) return made; /* release: the heap */
  parked_add(made); /* another thread made one first */
  return first;
}

bool starter_is_there(void) { return load_relaxed(&starters[0]); }
/* acquire: the heap that the pointer leads to; pairs with make_starter. */
static struct heap *starter_if_any(unsigned at) { return load_acquire(&starters[at]); }

/* A holder needs less than a microsecond, or was preempted: then it gets this thread's processor a few times. */
RESIDENT struct heap *starter_enter(void) {
  for (unsigned at = 0; at < STARTERS; at++) {
    struct heap *shared = starter_if_any(at);
    if (!shared) shared = make_starter(at);
    for (unsigned attempt = 0; shared && attempt < SPINS + YIELDS; attempt++) {
      if (latch_try(&shared->owner)) return owner_note_work(&shared->owner), shared;
      attempt < SPINS ? cpu_relax() : os_yield();
    }
  }
  return NULL;
}

RESIDENT struct slab *starter_take_along(struct heap *heap, unsigned class) {
  struct slab *slab = NULL;
  for (unsigned at = 0; at < STARTERS && !slab; at++) {
    struct heap *shared = starter_if_any(at);
    if (!shared || !latch_try(&shared->owner)) continue;
    slab = adopt_from_shared(&shared->owner, &heap->owner, class);
    latch_give(&shared->owner);
  }
  return slab;
}

void starter_after_fork(void) { /* the child has one thread */
  for (unsigned at = 0; at < STARTERS; at++) store_relaxed(&starters[at], NULL);
}
