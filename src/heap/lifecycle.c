#include "heap/lifecycle.h"

#include "base/scan.h"
#include "config/limits.h"
#include "config/options.h"
#include "guard/guarded.h"
#include "heap/batch.h"
#include "heap/capacity.h"
#include "heap/checked.h"
#include "heap/class_figures.h"
#include "heap/helper.h"
#include "heap/scavenge.h"
#include "heap/starter.h"
#include "map/huge.h"
#include "map/metadata.h"
#include "os/lock.h"
#include "pool/arena.h"
#include "pool/slab_pool.h"
#include "report/report.h"
#include "slab/adopt.h"

const struct heap empty_heap = {.tag = MAP_TAG_UNOWNED};
const struct heap ended_heap = {.tag = MAP_TAG_UNOWNED};
struct counters stray_counters;

/* Nothing is ever written through the pointer while it leads to a constant heap. */
THREAD_LOCAL struct heap *heap_of_thread = (struct heap *)(uintptr_t)&empty_heap;

/* ---- the library ------------------------------------------------------------------------------------- */

static ATOMIC(bool) is_library_ready;

static void end_of_thread(void *argument);

static enum misuse_action chosen_misuse_action(void) {
  static const char *const names[] = {
      [MISUSE_ABORT] = "abort", [MISUSE_WARN] = "warn", [MISUSE_IGNORE] = "ignore"};
  for (unsigned action = MISUSE_ABORT; action <= MISUSE_IGNORE; action++)
    if (scan_equals(options.on_misuse, names[action])) return (enum misuse_action)action;
  warn_malformed_option("HAKMEM_ON_MISUSE", options.on_misuse, "abort, warn or ignore");
  return MISUSE_ABORT;
}

static void obey_options(void) {
  limits_read();
  misuse_action = chosen_misuse_action();
  if (options.help) options_print_help();
}

enum { OPTIONS_UNREAD, OPTIONS_ABSENT, OPTIONS_SET };
static ATOMIC(uint32_t) options_state;
static struct lock start_lock = {.rank = LOCK_RANK_START};

/* Under the lock. */
static uint32_t read_options(void) {
  uint32_t state = load_relaxed(&options_state);
  if (state != OPTIONS_UNREAD) return state;
  state = options_read(os_environment()) ? OPTIONS_SET : OPTIONS_ABSENT;
  if (state == OPTIONS_SET) obey_options(); /* the defaults ask for nothing */
  checked_init();
  /* release: the options; pairs with library_has_options. */
  store_release(&options_state, state);
  return state;
}

bool library_has_options(void) {
  uint32_t state = load_acquire(&options_state); /* pairs with read_options */
  if (state != OPTIONS_UNREAD) return state == OPTIONS_SET;
  lock_take(&start_lock, &stray_counters);
  state = read_options();
  lock_give(&start_lock);
  return state == OPTIONS_SET;
}

/* The first heap's record: made, with its counters, before the pool's, so that all begin in few pages. */
static ATOMIC(struct heap *) first_record;

static struct heap *take_record(void) {
  struct heap *record = exchange_acquire(&first_record, NULL);
  return record ? record : metadata_allocate(sizeof *record);
}

/* What a refusal leaves undone the next call does: it begins where this one stopped. */
static bool start_library(void) {
  read_options();
  if (!load_relaxed(&window.chunk_limit)) {
    huge_init();
    if (!window_init(options.window_gib << 30)) return false;
  }
  if (!load_relaxed(&first_record)) store_relaxed(&first_record, take_record());
  class_figures_init();
  if (!load_relaxed(&first_record) || !slab_pool_init()) return false;
  os_thread_exit_init(end_of_thread);
  if (options.guard && !guarded_start()) warn_no_guards();
  return true;
}

bool library_ready(void) {
  if (LIKELY(load_acquire(&is_library_ready))) return true; /* pairs with the release below */
  lock_take(&start_lock, &stray_counters);
  bool is_ready = load_relaxed(&is_library_ready) || start_library();
  store_release(&is_library_ready, is_ready);
  lock_give(&start_lock);
  return is_ready;
}

/* ---- parked heaps --------------------------------------------------------------------------------------- */

static struct lock heaps_lock = {.rank = LOCK_RANK_HEAPS};
static struct heap *parked_heaps;     /* under the lock */
static ATOMIC(uint32_t) heap_numbers; /* given so far; relaxed: each is given once */

static void push_parked(struct heap *heap) {
  lock_take(&heaps_lock, &stray_counters);
  heap->next_parked = parked_heaps;
  parked_heaps = heap;
  lock_give(&heaps_lock);
}

static struct heap *pop_parked(void) {
  lock_take(&heaps_lock, &stray_counters);
  struct heap *heap = parked_heaps;
  if (heap) parked_heaps = heap->next_parked;
  lock_give(&heaps_lock);
  return heap;
}

static struct heap *unpark(void) {
  struct heap *heap = pop_parked();
  while (heap && load_relaxed(&heap->owner.state) == OWNER_LOST) heap = pop_parked();
  if (!heap) return NULL;
  latch_take(&heap->owner); /* somebody may be adopting from it */
  store_seq(&heap->owner.state, OWNER_RUNNING);
  latch_give(&heap->owner);
  store_relaxed(&heap->tag_for_ticker, heap->owner.tag); /* the ticker may have come too late */
  count(&heap->owner.counters, COUNT_heaps_recycled);
  return heap;
}

struct heap *heap_make(void) {
  struct heap *heap = take_record();
  if (!heap) return NULL;
  uint32_t number = fetch_add_relaxed(&heap_numbers, 1) + 1;
  heap->tag = heap->owner.tag = number << MAP_TAG_SHIFT;
  heap->owner.number = number;
  capacity_init(heap);
  /* Beside the counters: what is written before it is read costs one page fault, not two. */
  store_relaxed(&heap->owner.state, OWNER_RUNNING);
  count(&heap->owner.counters, COUNT_heaps_created);
  owner_register(&heap->owner);
  return heap;
}

static void park(struct heap *heap) {
  heap_enter(heap);
  batch_flush_all(heap);
  latch_take(&heap->owner);
  count(&heap->owner.counters, COUNT_heaps_parked);
  owner_park(&heap->owner);
  latch_give(&heap->owner);
  heap_leave(heap);
  push_parked(heap);
}

struct heap *heap_borrow(void) {
  if (!library_ready()) return NULL;
  heaps_park_lost_threads();
  struct heap *heap = unpark();
  if (!heap) heap = heap_make();
  if (LIKELY(heap)) return heap;
  scavenge_under_pressure(heap_of_thread); /* which has none, or has ended */
  return heap_make();
}

void heap_return(struct heap *heap) { park(heap); }

/* ---- a thread -------------------------------------------------------------------------------------------- */

struct heap *heap_of_this_thread(void) {
  struct heap *heap = heap_of_thread;
  if (LIKELY(heap_is_real(heap))) return heap;
  if (heap == &ended_heap) return NULL;
  if (os_is_multi_threaded()) heaps_at_fork(); /* a thread that the C library started for itself */
  heap = heap_borrow();
  if (!heap) return NULL;
  heap->exit_round = 0;
  /* 0 tells a reader enough of the first thread, and saves every small process a question. */
  if (os_is_multi_threaded()) store_relaxed(&heap->owner.thread_id, thread_number());
  helper_note_thread();
  heap_of_thread = heap; /* before arming, which may allocate */
  os_thread_exit_arm(heap);
  return heap;
}

/* Other destructors may still free and allocate, so ours asks to be called again until the last round
 * that is certain to come. */
static void end_of_thread(void *argument) {
  struct heap *heap = argument;
  if (++heap->exit_round < OS_THREAD_EXIT_ROUNDS) {
    os_thread_exit_arm(heap);
    return;
  }
  heap_of_thread = (struct heap *)(uintptr_t)&ended_heap;
  store_relaxed(&heap->owner.thread_id, 0);
  park(heap);
  helper_note_thread_end();
}

/* ---- fork -------------------------------------------------------------------------------------------------- */

/* In a child, until somebody parked the heaps of the threads that did not come along. */
static ATOMIC(uint32_t) has_lost_threads;
static struct lock lost_lock = {.rank = LOCK_RANK_LOST};
static uint32_t numbers_at_fork; /* written while the child has one thread */
static struct heap *survivor;    /* the heap of the thread that forked */

/* A process with one thread has nothing to guard: nobody is in a slow path, holds a latch or a lock.  To
 * touch nothing then saves copying the pages, in the parent and in the child. */
static ATOMIC(bool) fork_is_guarded; /* relaxed: all threads that fork at once write the same */

/* Nothing is taken that anybody waits for: other fork handlers and the C library's own part of fork wait for locks whose
 * holders may be in malloc (docs/decisions/0028).  Others only try an owner's latch. */
static void before_fork(void) {
  bool is_needed = os_is_multi_threaded();
  /* After a fork the first store to a page costs a fault, even of what it holds already. */
  if (load_relaxed(&fork_is_guarded) != is_needed) store_relaxed(&fork_is_guarded, is_needed);
  if (is_needed && heap_is_real(heap_of_thread)) latch_fork_begin(&heap_of_thread->owner);
}

static void after_fork_in_parent(void) {
  if (!load_relaxed(&fork_is_guarded)) return;
  if (heap_is_real(heap_of_thread)) latch_fork_end(&heap_of_thread->owner);
}

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

/* Somebody was changing the list: what is parked says so itself. */
static void list_parked_again(void) {
  parked_heaps = NULL;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    if (load_relaxed(&owner->state) == OWNER_PARKED) push_parked(heap_of_owner(owner));
}

/* Heaps that were made since are the child's own. */
static void park_lost_thread(struct heap *heap) {
  uint32_t state = load_relaxed(&heap->owner.state);
  bool is_lost = heap != survivor && heap->owner.number <= numbers_at_fork;
  if (is_lost && state != OWNER_PARKED && state != OWNER_LOST) park(heap);
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

void heaps_park_lost_threads(void) {
  if (UNLIKELY(load_acquire(&has_lost_threads))) park_lost_threads();
}

/* The memory of the child is that of one moment, each thread cut off between two of its stores.  What a lock or a latch
 * says was being changed is set aside or made anew; all else is whole. */
static void after_fork_in_child(void) {
  thread_number_forget();
  if (!load_relaxed(&fork_is_guarded)) return;
  if (heap_is_real(heap_of_thread)) latch_fork_end(&heap_of_thread->owner);
  survivor = heap_of_thread;
  lock_reset_in_child(&start_lock); /* who comes next goes on with what is undone */
  arenas_after_fork();
  guarded_after_fork();
  scavenge_after_fork();
  starter_after_fork();
  helper_after_fork(heap_is_real(survivor));
  give_up_broken_heaps();
  if (lock_reset_in_child(&heaps_lock)) list_parked_again();
  lock_reset_in_child(&lost_lock);
  numbers_at_fork = load_relaxed(&heap_numbers);
  store_relaxed(&has_lost_threads, 1); /* relaxed: the child has one thread */
}

void heaps_at_fork(void) {
  static ATOMIC(uint32_t) is_done; /* relaxed: it says that somebody does it, not that it is done */
  if (load_relaxed(&is_done) || fetch_or_relaxed(&is_done, 1)) return;
  os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
}
