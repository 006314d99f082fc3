#include "cache/lost.h"

#include "cache/caches.h"
#include "cache/new_heap.h"
#include "cache/parked.h"
#include "os/lock.h"
#include "slab/adopt.h"

/* In a child, until somebody parked the heaps of the threads that did not come along. */
static ATOMIC(uint32_t) has_lost_threads;
static struct lock lost_lock = {.rank = LOCK_RANK_LOST};
static uint32_t numbers_at_fork; /* written while the child has one thread */
static struct heap *survivor;    /* the heap of the thread that forked */

/* A thread cut off inside a slow path, or with another's latch, left lists as they happened to be: nobody
 * may touch them again.  One cut off on a fast path at worst loses the block in its hands. */
static bool is_broken(const struct heap *heap) {
  const struct owner *owner = &heap->owner;
  uint32_t latch = load_relaxed(&owner->latch);
  if (latch != LATCH_FREE && latch != LATCH_FORKING) return true;
  return load_relaxed(&owner->state) != OWNER_PARKED && load_relaxed(&heap->is_busy);
}

/* At once, before any thread of the child can wait for a latch that nobody will give back. */
static void give_up_broken_heaps(void) {
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    const struct heap *heap = heap_of_owner(owner);
    if (heap == survivor) continue;
    if (is_broken(heap))
      store_relaxed(&owner->state, OWNER_LOST);
    else if (load_relaxed(&owner->latch) == LATCH_FORKING)
      latch_fork_end(owner); /* its thread was about to fork, too */
  }
}

/* Heaps that were made since are the child's own. */
static void park_lost_thread(struct heap *heap) {
  uint32_t state = load_relaxed(&heap->owner.state);
  bool is_lost = heap != survivor && heap->owner.number <= numbers_at_fork;
  if (is_lost && state != OWNER_PARKED && state != OWNER_LOST) caches_park(heap);
}

/* Nobody gets a heap before all are parked: one that is taken over meanwhile would look like a lost one. */
COLD static void park_lost_threads(void) {
  lock_take(&lost_lock, &stray_counters);
  if (load_relaxed(&has_lost_threads)) {
    for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
      park_lost_thread(heap_of_owner(owner));
    store_release(&has_lost_threads, 0); /* what was parked before; pairs with the acquire below */
  }
  lock_give(&lost_lock);
}

RESIDENT void heaps_park_lost_threads(void) {
  if (UNLIKELY(load_acquire(&has_lost_threads))) park_lost_threads();
}

void lost_after_fork(struct heap *own) {
  survivor = own;
  give_up_broken_heaps();
  parked_after_fork(); /* somebody was changing the list: what is parked says so itself */
  lock_reset_in_child(&lost_lock);
  numbers_at_fork = heaps_made();
  store_relaxed(&has_lost_threads, 1); /* relaxed: the child has one thread */
}
