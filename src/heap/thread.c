#include "heap/thread.h"

#include "cache/caches.h"
#include "cache/capacity.h"
#include "cache/divert.h"
#include "cache/flush.h"
#include "cache/lost.h"
#include "cache/parked.h"
#include "cache/refill.h"
#include "config/options.h"
#include "heap/fork.h"
#include "heap/library.h"
#include "reclaim/due.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"

bool heap_use(struct heap *heap, struct hak_heap *named) {
  struct hak_heap *before = heap->used;
  if (named == before) return true;
  if (named && !named_join(named)) return false;
  divert_use(heap, named);
  if (before) named_part(before);
  return true;
}

/* ---- its end --------------------------------------------------------------------------------- */

/* Called when the heap gets another thread, or none. */
INLINE void forget_name(struct heap *heap) {
  struct hak_heap *named = heap->named;
  if (LIKELY(!named)) return;
  heap->named = NULL; /* first: a child forked in between drops it no second time */
  named_drop(named);
}

/* Other destructors may still free and allocate, so ours asks to be called again until the last
 * round that is certain to come. */
static void end_of_thread(void *argument) {
  struct heap *heap = argument;
  if (++heap->exit_round < OS_THREAD_EXIT_ROUNDS) {
    os_thread_exit_arm(heap);
    return;
  }
  heap_of_thread = (struct heap *)(uintptr_t)&ended_heap;
  store_relaxed(&heap->owner.thread_id, 0);
  forget_name(heap);
  heap_use(heap, NULL);
  caches_park(heap);
  helper_note_thread_end();
}

/* ---- its heap -------------------------------------------------------------------------------- */

RESIDENT bool heaps_ready(void) { return library_ready(end_of_thread); }

RESIDENT struct heap *heap_borrow(void) {
  if (!heaps_ready()) return NULL;
  lost_park(LOST_A_STEP);
  struct heap *heap = parked_take();
  if (!heap) heap = heap_make();
  if (LIKELY(heap)) return heap;
  reclaim(heap_of_thread, RECLAIM_PRESSURE); /* the thread has no heap, or has ended */
  return heap_make();
}

static THREAD_LOCAL uint16_t early_calls;
static THREAD_LOCAL uint8_t early_free_class; /* plus one, of the block freed last */
RESIDENT static struct heap *begin(struct heap *heap) {
  if (!heap) return NULL;
  if (early_free_class) capacity_close(heap, early_free_class - 1u);
  heap->exit_round = heap->share_decisions = 0;
  forget_name(heap); /* in a forked child: the name of its lost thread */
  /* 0 identifies the first thread, and saves every small process a system call. */
  if (os_is_multi_threaded()) store_relaxed(&heap->owner.thread_id, thread_number());
  helper_note_thread();
  heap_of_thread = heap; /* before arming, which may allocate */
  os_thread_exit_arm(heap);
  return heap;
}

RESIDENT struct heap *heap_of_this_thread(void) {
  os_settle_copy();
  struct heap *heap = heap_of_thread;
  if (LIKELY(heap_is_real(heap))) return heap;
  if (heap == &ended_heap) return NULL;
  if (os_is_multi_threaded()) heaps_at_fork(); /* a thread that the C library started for itself */
  return begin(heap_borrow());
}

/* Whether a round is due costs a quarter of such a call. */
enum { CALLS_BETWEEN_LOOKS = 16 };

/* A parked heap costs nothing. */
RESIDENT void *early_call(unsigned class, size_t bytes, void *freed) {
  const unsigned most = freed ? EARLY_FREES : EARLY_CALLS;
  if (early_calls >= most || !os_is_multi_threaded() || !owners_first()) return NULL;
  os_settle_copy();
  heaps_at_fork();
  if (window.hardened_bit || options.guard || sampler_is_wanted(&empty_heap.sampler) ||
      (!early_calls++ && begin(parked_take())))
    return NULL;
  if (freed) early_free_class = (uint8_t)(class + 1);
  void *block = freed ? starter_give(class, freed) : starter_take(class, bytes);
  if (!freed) helper_start_when_worth(); /* the C library frees under a lock that it needs */
  if (early_calls % CALLS_BETWEEN_LOOKS == 1) reclaim_when_due(heap_of_thread);
  return block;
}
