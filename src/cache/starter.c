#include "cache/starter.h"

#include "cache/parked.h"
#include "slab/adopt.h"

/* By group of processors, as the latch's line is every new thread's; the others serve while the
 * latch's holder is preempted. */
enum { STARTERS = 16, GROUP_PROCESSORS = 16, SPINS = 16 };
RARE_DATA static ATOMIC(struct heap *) starters[STARTERS];

static struct heap *make_starter(unsigned at) {
  struct heap *made = heap_make(), *first = NULL;
  if (!made || cas_strong_acq_rel(&starters[at], &first, made)) return made; /* release: the heap */
  parked_add(made); /* another thread made one first */
  return first;
}

/* acquire: the heap that the pointer leads to; pairs with make_starter. */
static struct heap *starter_if_any(unsigned at) { return load_acquire(&starters[at]); }
bool starter_is_there(void) {
  unsigned at = 0;
  while (at < STARTERS && !starter_if_any(at)) at++;
  return at < STARTERS;
}

/* A holder needs less than a microsecond, or was preempted: then another serves, and if all were,
 * the thread waits. */
RESIDENT struct heap *starter_enter(void) {
  unsigned group = os_processor() / GROUP_PROCESSORS;
  for (unsigned attempt = 0;; attempt++) {
    unsigned at = (group + attempt / SPINS) % STARTERS;
    struct heap *shared = starter_if_any(at);
    if (!shared && !(shared = make_starter(at))) return NULL;
    bool has_tried_all = attempt == STARTERS * SPINS;
    if (has_tried_all) word_wait(&shared->owner.latch);
    if (has_tried_all || latch_try(&shared->owner)) return owner_note_work(&shared->owner), shared;
    cpu_relax();
  }
}

RESIDENT struct slab *starter_take_along(struct heap *heap, unsigned class) {
  struct slab *slab = NULL;
  for (unsigned at = 0; at < STARTERS && !slab; at++) {
    struct heap *shared = starter_if_any(at);
    if (!shared || !load_relaxed(&shared->owner.bins[class].slab_count)) continue;
    if (!latch_try(&shared->owner)) continue;
    slab = adopt_from_shared(&shared->owner, &heap->owner, class);
    latch_give(&shared->owner);
  }
  return slab;
}

void starter_after_fork(void) { /* the child has one thread */
  for (unsigned at = 0; at < STARTERS; at++) store_relaxed(&starters[at], NULL);
}
