/* helper.c: see helper.h.
 *
 *   helper_start_when_worth ─▶ body: rest ─▶ divert_tick, reclaim_round_when_due ─▶ … ─▶ is_over? ─▶ leave
 *
 * It rests on one word, `purge_helper_waits`: the helper writes there how it rests, checks once
 * more for a reason not to, and sleeps; a thread with a reason to wake it first changes its own
 * word and then reads this one. */
#include "reclaim/helper.h"

#include "cache/divert.h"
#include "cache/starter.h"
#include "config/limits.h"
#include "config/options.h"
#include "os/lock.h"
#include "pool/slab_pool.h"
#include "reclaim/due.h"
#include "reclaim/reclaim.h"
#include "report/report.h"

enum { HELPER_NONE, HELPER_RUNNING, HELPER_REFUSED };
static ATOMIC(uint32_t) helper_state;
static ATOMIC(uint32_t) helper_thread_id;     /* the kernel's, of the last one */
static ATOMIC(uint32_t) helper_shall_end;     /* the number of threads that wait for that */
static ATOMIC(uint64_t) helper_not_before_ms; /* a short-lived forked child needs no helper */

/* Threads of the program that have heaps; whether there was ever one. */
static ATOMIC(uint32_t) program_threads;
static ATOMIC(bool) has_begun;

/* Values of the option. A program that is small or has no threads gains nothing from a helper. */
enum { HELPER_NEVER, HELPER_ALWAYS, HELPER_WHEN_WORTH };

/* ---- its life -------------------------------------------------------------------------------- */

static bool gives_back(void) { return options.helper_thread != HELPER_NEVER; }

/* A round sets NONE while it scans, and at its end the state that is left. */
static bool has_work(void) {
  if (!gives_back()) return false;
  if (load_seq(&purge_state) != PURGE_NONE) return true; /* seq: after `rest` announced itself */
  return reclaim_is_running() || load_seq(&purge_state) != PURGE_NONE; /* seq: after that load */
}

static bool is_over(void) {
  if (load_seq(&helper_shall_end)) return true;
  uint32_t threads = load_seq(&program_threads);
  if (threads == 0) return load_relaxed(&has_begun);
  if (options.helper_thread == HELPER_ALWAYS) return false;
  if (os_is_confined()) return false; /* a filter may kill a thread that ends */
  return threads == 1 && !starter_is_there() && !has_work(); /* others may have no heap */
}

/* Rests as `how` says, unless there is a reason not to. */
static void rest(enum purge_rest how, uint64_t most_ms) {
  /* seq: announced before the check; pairs with purge_wake_helper and wake. */
  store_seq(&purge_helper_waits, how);
  bool has_reason =
      is_over() || load_seq(&superslab_is_wanted) || (how == PURGE_REST_UNTIL_WANTED && has_work());
  if (!has_reason) os_wait(&purge_helper_waits, how, most_ms);
  store_seq(&purge_helper_waits, PURGE_REST_NONE);
}

static void wake(void) {
  /* seq: after the caller's writes that the helper must see; pairs with rest. */
  if (load_seq(&purge_helper_waits) != PURGE_REST_NONE) purge_wake();
}

/* Checks at each interval of rounds, and ticks; sleeps while there is no memory to purge. */
static void work_once(void) {
  slab_pool_make_ahead(heap_counters(heap_of_thread));
  bool is_ticking = divert_wants_ticks();
  if (!is_ticking && !has_work()) {
    rest(PURGE_REST_UNTIL_WANTED, LIMITS_DECAY_NEVER_MS);
    return;
  }
  uint64_t round_ms = reclaim_interval_ms() + 1;
  rest(PURGE_REST_FOR_A_TIME, is_ticking ? DIVERT_TICK_MS : round_ms);
  if (is_ticking) divert_tick();
  if (!has_work()) return;
  while (reclaim_round_when_due(heap_of_thread) && !is_over()) continue;
}

/* False when the helper is wanted again by now, and no other has been started. */
static bool may_leave(void) {
  uint32_t none = HELPER_NONE;
  store_relaxed(&purge_has_helper, false);
  /* seq: no thread relies on the helper any more, then the check; pairs with a thread that needs
   * one and asks for it. */
  store_seq(&helper_state, HELPER_NONE);
  if (is_over() || !cas_strong_seq(&helper_state, &none, HELPER_RUNNING)) return true;
  store_relaxed(&purge_has_helper, gives_back());
  return false;
}

static void *helper_body(void *unused) {
  os_thread_settle("hakmem");
  store_relaxed(&helper_thread_id, thread_number());
  store_relaxed(&purge_has_helper, gives_back()); /* relaxed: seen late, slow paths do it */
  while (!is_over() || !may_leave()) work_once();
  return unused;
}

/* ---- its beginning --------------------------------------------------------------------------- */

/* Asked at each slow path of malloc: most programs are small. */
static bool is_worth_a_helper(void) {
  if (options.helper_thread == HELPER_ALWAYS) return true;
  bool is_small = reclaim_is_small();
  if (is_small && !options.guard) return false;
  if (!os_is_multi_threaded()) return false;
  if (divert_wants_ticks()) return true;
  return options.helper_thread == HELPER_WHEN_WORTH && !is_small &&
         load_relaxed(&purge_state) != PURGE_NONE &&
         os_now_coarse_ms() >= load_relaxed(&helper_not_before_ms);
}

bool helper_is(void *(*body)(void *)) { return body == helper_body; }

/* The last helper takes a few microseconds to end. Its number may be given to another thread
 * later. */
static bool is_still_leaving(void) {
  uint32_t before = load_relaxed(&helper_thread_id);
  if (!before || os_thread_exists(before)) return before != 0;
  cas_strong_acq_rel(&helper_thread_id, &before, 0); /* acq_rel: orders nothing */
  return false;
}

/* The helper may outlive each heap of the program: the C library's allocations for it must lie in
 * none of them. */
static bool start_thread(void) {
  struct hak_heap *used = divert_set_aside();
  bool is_started = os_thread_start(helper_body, NULL);
  divert_take_up(used);
  return is_started;
}

NOINLINE static void start(void) {
  uint32_t none = HELPER_NONE;
  /* A guest's thread would end with the guest's process, or keep that from ending. */
  if (os_is_guest() || is_over() || is_still_leaving()) return;
  /* acq_rel: orders nothing; one thread starts it. */
  if (!cas_strong_acq_rel(&helper_state, &none, HELPER_RUNNING)) return;
  if (start_thread()) return;
  store_relaxed(&helper_state, HELPER_REFUSED);
  if (options.helper_thread != HELPER_ALWAYS) return;
  if (os_is_confined()) return; /* no thread could be started, and a write may be fatal */
  report_line(
      "warning: HAKMEM_HELPER_THREAD=1: no thread can be started;"
      " memory is given back by slow paths");
}

RESIDENT void helper_start_when_worth(void) {
  if (LIKELY(load_relaxed(&helper_state) != HELPER_NONE)) return;
  if (UNLIKELY(is_worth_a_helper())) start();
}

/* ---- its end --------------------------------------------------------------------------------- */

/* Whether the calling thread is the helper, which is not one of the program's. */
static bool is_helper(void) {
  return thread_number_if_known && thread_number_if_known == load_relaxed(&helper_thread_id);
}

RESIDENT void helper_note_thread(void) {
  if (UNLIKELY(is_helper())) return;
  fetch_add_relaxed(&program_threads, 1);
  if (!load_relaxed(&has_begun)) store_relaxed(&has_begun, true);
}

/* A second, by milliseconds: the kernel ends a thread in some microseconds, on a very busy machine
 * later. */
enum { STOP_ATTEMPTS = 1000 };

bool helper_stop(bool for_good) {
  if (os_is_guest()) return false; /* the helper is a thread of another process */
  bool was_there = load_relaxed(&helper_state) == HELPER_RUNNING || is_still_leaving();
  fetch_add_seq(&helper_shall_end, 1); /* seq: pairs with rest */
  wake();
  for (unsigned attempt = 0; attempt < STOP_ATTEMPTS; attempt++) {
    if (load_relaxed(&helper_state) != HELPER_RUNNING && !is_still_leaving()) break;
    os_sleep_ms(1);
  }
  if (for_good) store_relaxed(&helper_state, HELPER_REFUSED);
  fetch_sub_relaxed(&helper_shall_end, 1);
  return was_there;
}

/* The last thread waits until the helper is gone: else the helper, as the process's last thread,
 * would run the program's exit handlers. */
void helper_note_thread_end(void) {
  if (UNLIKELY(is_helper())) return;
  if (fetch_sub_seq(&program_threads, 1) == 1) /* seq: pairs with rest */
    helper_stop(false);
  else
    wake();
}

void helper_after_fork(uint32_t thread_count) {
  store_relaxed(&purge_helper_waits, PURGE_REST_NONE);
  store_relaxed(&helper_state, HELPER_NONE); /* the child starts its own */
  store_relaxed(&purge_has_helper, false);
  store_relaxed(&helper_thread_id, 0);
  store_relaxed(&helper_shall_end, 0);
  os_forget_threads();
  store_relaxed(&program_threads, thread_count);
  store_relaxed(&helper_not_before_ms, os_now_coarse_ms() + options.decay_ms);
}
