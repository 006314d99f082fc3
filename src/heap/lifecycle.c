#include "heap/lifecycle.h"

#include "base/scan.h"
#include "cache/caches.h"
#include "cache/capacity.h"
#include "cache/flush.h"
#include "cache/lost.h"
#include "cache/parked.h"
#include "cache/refill.h"
#include "cache/starter.h"
#include "checked/checked.h"
#include "config/limits.h"
#include "config/options.h"
#include "foreign/operators.h"
#include "guard/guarded.h"
#include "heap/use.h"
#include "map/metadata.h"
#include "named/named_heap.h"
#include "os/lock.h"
#include "pool/slab_pool.h"
#include "profile/control.h"
#include "ranges/arena.h"
#include "ranges/range_magazine.h"
#include "reclaim/due.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"
#include "report/report.h"

/* ---- the library ----------------------------------------------------------------------------- */

static ATOMIC(bool) is_library_ready;

static void end_of_thread(void *argument);

static enum misuse_action chosen_misuse_action(void) {
  static const char *const names[] = {
      [MISUSE_ABORT] = "abort", [MISUSE_WARN] = "warn", [MISUSE_IGNORE] = "ignore"};
  for (unsigned action = MISUSE_ABORT; action <= MISUSE_IGNORE; action++)
    if (scan_equals(options.on_misuse, names[action])) return (enum misuse_action)action;
  report_line("warning: HAKMEM_ON_MISUSE=\"%s\" is not abort, warn or ignore; ignored",
              options.on_misuse);
  return MISUSE_ABORT;
}

static void obey_options(void) {
  limits_read();
  misuse_action = chosen_misuse_action();
  profile_start();
  if (options.help) options_print_help();
}

enum { OPTIONS_UNREAD, OPTIONS_ABSENT, OPTIONS_SET };
static ATOMIC(uint32_t) options_state;
static struct lock start_lock = {.rank = LOCK_RANK_START};

/* Under the lock. */
RESIDENT static uint32_t read_options(void) {
  uint32_t state = load_relaxed(&options_state);
  if (state != OPTIONS_UNREAD) return state;
  state = options_read(os_environment()) ? OPTIONS_SET : OPTIONS_ABSENT;
  if (state == OPTIONS_SET) obey_options(); /* the defaults need no action */
  checked_init();
  /* release: the options; pairs with library_has_options. */
  store_release(&options_state, state);
  return state;
}

RESIDENT bool library_has_options(void) {
  uint32_t state = load_acquire(&options_state); /* pairs with read_options */
  if (state != OPTIONS_UNREAD) return state == OPTIONS_SET;
  lock_take(&start_lock, &stray_counters);
  state = read_options();
  lock_give(&start_lock);
  return state == OPTIONS_SET;
}

/* Work left undone by a refusal is done by the next call: it begins where this one stopped. */
static bool start_library(void) {
  read_options();
  if (!load_relaxed(&window.chunk_limit) && !window_init(options.window_gib << 30)) return false;
  if (!metadata_start()) return false;
  os_thread_exit_init(end_of_thread);
  if (options.guard && !guarded_start())
    report_line("warning: HAKMEM_GUARD=1: no address space; no block is guarded");
  return true;
}

RESIDENT bool library_ready(void) {
  if (LIKELY(load_acquire(&is_library_ready))) return true; /* pairs with the release below */
  operators_of_others(); /* not under the lock: it may wait for the dynamic linker's */
  lock_take(&start_lock, &stray_counters);
  bool is_ready = load_relaxed(&is_library_ready) || start_library();
  store_release(&is_library_ready, is_ready);
  lock_give(&start_lock);
  return is_ready;
}

RESIDENT struct heap *heap_borrow(void) {
  if (!library_ready()) return NULL;
  lost_park(LOST_A_STEP);
  struct heap *heap = parked_take();
  if (!heap) heap = heap_make();
  if (LIKELY(heap)) return heap;
  reclaim(heap_of_thread, RECLAIM_PRESSURE); /* the thread has no heap, or has ended */
  return heap_make();
}

/* ---- a thread -------------------------------------------------------------------------------- */

/* Called when the heap gets another thread, or none. */
INLINE void forget_name(struct heap *heap) {
  struct hak_heap *named = heap->named;
  if (LIKELY(!named)) return;
  heap->named = NULL; /* first: a child forked in between drops it no second time */
  named_drop(named);
}

static THREAD_LOCAL uint8_t early_calls, early_free_class; /* plus one, of the block freed last */
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

/* A parked heap costs nothing. A free makes a heap later than a malloc does: that heap would keep a
 * block of a shared slab. */
RESIDENT void *early_call(unsigned class, size_t bytes, void *freed) {
  const unsigned most = freed ? 192 : 64;
  if (early_calls >= most || !os_is_multi_threaded() || !owners_first()) return NULL;
  os_settle_copy();
  heaps_at_fork();
  if (window.hardened_class || options.guard || sampler_is_wanted(&empty_heap.sampler) ||
      (!early_calls++ && begin(parked_take())))
    return NULL;
  if (freed) early_free_class = (uint8_t)(class + 1);
  void *block = freed ? starter_give(class, freed) : starter_take(class, bytes);
  if (!freed) helper_start_when_worth(); /* the C library frees under a lock that it needs */
  reclaim_when_due(heap_of_thread);
  return block;
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
  heap_end_use(heap);
  caches_park(heap);
  helper_note_thread_end();
}

/* ---- fork ------------------------------------------------------------------------------------ */

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

static void after_fork_in_parent(void) {
  if (!load_relaxed(&fork_is_guarded)) return;
  if (heap_is_real(heap_of_thread)) latch_fork_end(&heap_of_thread->owner);
}

/* The memory of the child is that of one moment, each thread cut off between two of its stores.
 * Data whose lock or latch was held is set aside or made anew; all other data is whole. */
static void go_on_alone(void) {
  window_after_fork();
  metadata_after_fork();
  lock_reset_in_child(&start_lock); /* the next caller completes the start */
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
  if (!load_relaxed(&fork_is_guarded)) return;
  if (heap_is_real(heap_of_thread)) latch_fork_end(&heap_of_thread->owner);
  go_on_alone();
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
  os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
  os_mark_copies(settle_copy);
}
