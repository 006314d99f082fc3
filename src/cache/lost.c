#include "cache/lost.h"

#include "cache/caches.h"
#include "cache/parked.h"
#include "os/lock.h"
#include "slab/pending.h"

/* Set in a child until all heaps of the parent were visited. */
static ATOMIC(uint32_t) has_lost_threads;
static struct lock lost_lock = {.rank = LOCK_RANK_LOST};
static struct owner *next_owner; /* under the lock */
static struct heap *survivor;    /* the heap of the thread that forked */

/* A thread cut off inside a slow path, or holding another owner's latch, may have left lists half
 * changed: they are never used again. One cut off on a fast path at worst loses the block in its
 * hands. */
static bool is_broken(const struct heap *heap) {
  const struct owner *owner = &heap->owner;
  uint32_t latch = load_relaxed(&owner->latch);
  if (latch != LATCH_FREE && latch != LATCH_FORKING) return true;
  return load_relaxed(&owner->state) != OWNER_PARKED && load_relaxed(&heap->is_busy);
}

/* Called at once, before a thread of the child can wait for a latch whose holder does not exist
 * here. */
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

/* Parks a lost thread's heap; heaps made or taken over since the fork are the child's own. */
static void park_if_lost(struct heap *heap) {
  uint32_t state =
      load_acquire(&heap->owner.state); /* pairs with parked_take, which has noted it before */
  if (state == OWNER_PARKED || state == OWNER_LOST || heap == survivor) return;
  if (!parked_was_taken_here(heap)) caches_park(heap);
}

COLD static bool park_some(size_t most) {
  lock_take(&lost_lock, &stray_counters);
  for (; next_owner && most; most--) {
    pending_after_fork(next_owner);
    park_if_lost(heap_of_owner(next_owner));
    next_owner = next_owner->next_of_all;
  }
  bool has_more = next_owner != NULL;
  store_release(&has_lost_threads, has_more); /* the heaps parked; pairs with the acquire below */
  lock_give(&lost_lock);
  return has_more;
}

RESIDENT bool lost_park(size_t most) {
  return UNLIKELY(load_acquire(&has_lost_threads)) && park_some(most);
}

void lost_after_fork(struct heap *own) {
  survivor = own;
  give_up_broken_heaps();
  /* The list may have been half changed: it is rebuilt from the heaps' states. */
  parked_after_fork();
  lock_reset_in_child(&lost_lock);
  next_owner = owners_first();
  store_relaxed(&has_lost_threads, 1); /* relaxed: the child has one thread */
}
