#include "heap/fork.h"

#include "cache/lost.h"
#include "cache/starter.h"
#include "heap/library.h"
#include "map/metadata.h"
#include "named/named_heap.h"
#include "pool/slab_pool.h"
#include "profile/control.h"
#include "ranges/arena.h"
#include "ranges/range_magazine.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"

/* A process with one thread needs no guard: no other thread is in a slow path or holds a latch or a
 * lock. To touch no page then saves copying it, in the parent and in the child. */
static ATOMIC(bool) fork_is_guarded; /* relaxed: all threads that fork at once write the same */

/* Takes no lock that other threads wait for: other fork handlers and the C library's own part of
 * fork wait for locks whose holders may be in malloc (docs/decisions/0028). Other threads only try
 * an owner's latch. */
static void before_fork(void) {
  os_settle_copy();
  bool is_needed = os_is_multi_threaded();
  /* After a fork the first store to a page costs a fault, even if it changes nothing. */
  if (load_relaxed(&fork_is_guarded) != is_needed) store_relaxed(&fork_is_guarded, is_needed);
  if (is_needed && heap_is_real(heap_of_thread)) latch_fork_begin(&heap_of_thread->owner);
}

static void end_guard(void) {
  if (load_relaxed(&fork_is_guarded) && heap_is_real(heap_of_thread))
    latch_fork_end(&heap_of_thread->owner);
}

/* The memory of the child is that of one moment, each thread cut off between two of its stores.
 * Data whose lock or latch was held is set aside or made anew; all other data is whole. */
static void go_on_alone(void) {
  window_after_fork();
  metadata_after_fork();
  library_after_fork();
  arenas_after_fork();
  slab_pool_after_fork();
  range_magazines_after_fork();
  named_after_fork(heap_of_thread->used);
  reclaim_after_fork();
  starter_after_fork();
  helper_after_fork(heap_is_real(heap_of_thread));
  lost_after_fork(heap_of_thread);
}

static void after_fork_in_child(void) {
  os_note_copy();
  thread_number_forget();
  profile_after_fork();
  end_guard();
  if (load_relaxed(&fork_is_guarded)) go_on_alone();
}

/* The child was made without handlers (_Fork, clone), so nothing was held for it: even this heap
 * may have been changing. */
static void settle_copy(void) {
  thread_number_forget();
  profile_after_fork();
  struct heap *heap = heap_of_thread;
  uint32_t latch = heap_is_real(heap) ? load_relaxed(&heap->owner.latch) : LATCH_FREE;
  if (latch != LATCH_FREE && latch != LATCH_OWN)
    heap_of_thread = (struct heap *)(uintptr_t)&empty_heap; /* lost, like other threads' heaps */
  go_on_alone();
}

RESIDENT void heaps_at_fork(void) {
  os_settle_copy();                /* before a copy has a second thread */
  static ATOMIC(uint32_t) is_done; /* relaxed: one thread has begun it, perhaps not finished */
  if (load_relaxed(&is_done) || fetch_or_relaxed(&is_done, 1)) return;
  range_magazines_share();
  thread_number_forget(); /* the number may be the parent's: no handler has run if that had one thread */
  os_at_fork(before_fork, end_guard, after_fork_in_child);
  os_mark_copies(settle_copy);
}
