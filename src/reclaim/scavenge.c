#include "reclaim/scavenge.h"

#include "cache/caches.h"
#include "cache/capacity.h"
#include "cache/divert.h"
#include "cache/flush.h"
#include "cache/lost.h"
#include "cache/remote_buffer.h"
#include "config/limits.h"
#include "config/options.h"
#include "large/range_cache.h"
#include "map/commit.h"
#include "map/window.h"
#include "os/lock.h"
#include "pool/purge.h"
#include "pool/range.h"
#include "pool/slab_pool.h"
#include "report/report.h"
#include "slab/adopt.h"
#include "slab/pages.h"

/* Rounds in one decay time: memory goes at most a quarter later than it could. */
enum { ROUNDS_PER_DECAY = 4, ROUND_MIN_INTERVAL_MS = 10 };
/* Most that one round gives back: bounds how long the thread that happens to start it is held up. */
#define ROUND_MAX_BYTES ((size_t)512 << 20)
/* The same for pages inside slabs, where the number of calls is what costs. */
enum { ROUND_PAGE_CALLS = 2048 };
/* System calls for ranges that a thread of the program does for all; if there is more, a slow path soon after goes
 * on.  The helper does as many as there are. */
enum { ROUND_RANGE_CALLS = 32, NEXT_PART_MS = 1 };

static ATOMIC(uint64_t) next_round_ms;
static struct lock round_lock = {.rank = LOCK_RANK_ROUND}; /* one round at a time */

/* Less than the option says when the cgroup's memory is nearly used up. */
RESIDENT static uint64_t decay_ms(void) { return limits_decay_ms(options.decay_ms); }

uint64_t scavenge_interval_ms(void) {
  uint64_t interval = decay_ms() / ROUNDS_PER_DECAY;
  return interval > ROUND_MIN_INTERVAL_MS ? interval : ROUND_MIN_INTERVAL_MS;
}

/* A page inside a slab costs a call and, when its blocks are wanted again, a fault: in a busy program that is soon, so
 * such pages wait even where nothing else does. */
enum { PAGE_DECAY_MIN_MS = 100 };

static uint32_t page_decay_ms(void) {
  uint64_t decay = decay_ms();
  return decay > PAGE_DECAY_MIN_MS ? (uint32_t)decay : PAGE_DECAY_MIN_MS;
}

/* A thread that finds all it wants in its magazines comes to no slow path, and what it does not want lies there as well.
 * It is called once it is dormant; one that sleeps answers when it frees again.  True while answers may come: what they
 * free is to go back as well, and who answers may come to no other slow path. */
enum { ANSWER_DECAYS = 2 };
static uint64_t answers_until_ms; /* under the lock */

static bool call_idle_threads(const struct heap *self, uint64_t now_ms) {
  if (options.harden) return false; /* no magazines */
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    struct heap *heap = heap_of_owner(owner);
    if (heap == self || load_relaxed(&owner->state) != OWNER_DORMANT) continue;
    if (heap_is_diverted(heap) || load_relaxed(&owner->slow_paths) < load_relaxed(&heap->settled))
      continue;
    store_relaxed(&heap->is_called, true); /* relaxed: seen late, it is called in vain */
    heap_divert(heap);
    answers_until_ms = now_ms + ANSWER_DECAYS * decay_ms();
  }
  return now_ms < answers_until_ms;
}

static void run(struct heap *heap, struct purge *purge) {
  struct counters *counters = heap_counters(heap);
  count(counters, COUNT_purges);
  /* Before the look, so that whoever frees afterwards sets it again. */
  store_seq(&purge_state, PURGE_NONE);
  owners_sweep(&heap->owner, purge);
  purge->work_remains |= heap->has_waiting_pages;
  purge->work_remains |= call_idle_threads(heap, os_now_coarse_ms());
  range_cache_purge(purge, counters);
  slab_pool_purge(purge);
  range_purge(purge, counters);
  if (!purge->work_remains) return;
  store_seq(&purge_state, PURGE_ARMED);
  purge_wake_helper();
}

/* A process that has stayed small is not worth the files of its cgroup. */
enum { LOOK_MIN_CHUNKS = 8 };
static ATOMIC(bool) has_looked;

/* seq: between two looks at `purge_state`; pairs with `run`, which has set that before the lock is given. */
bool scavenge_is_running(void) { return load_seq(&round_lock.word) != 0; }

/* With the lock. */
static void look_if_large(void) {
  if (load_relaxed(&window.frontier_chunk) < LOOK_MIN_CHUNKS) return;
  limits_look();
  store_relaxed(&has_looked, true);
}

/* With the lock. */
static void run_alone(struct heap *heap, struct purge *purge) {
  if (purge->decay_ms) {
    look_if_large();
    purge->decay_ms = (uint32_t)decay_ms();
  }
  run(heap, purge);
  lock_give(&round_lock);
}

/* Runs unless another thread is at it. */
static void run_unless_running(struct heap *heap, struct purge *purge) {
  if (lock_try(&round_lock)) run_alone(heap, purge);
}

/* After another thread's round: that may be past what is free now. */
static void run_after_others(struct heap *heap, struct purge *purge) {
  lock_take(&round_lock, heap_counters(heap));
  run_alone(heap, purge);
}

/* Before the first round, so that caches do not fill beyond what the cgroup allows. */
RESIDENT NOINLINE static void look_for_the_first_time(void) {
  if (load_relaxed(&window.frontier_chunk) < LOOK_MIN_CHUNKS) return;
  if (!lock_try(&round_lock)) return;
  look_if_large();
  lock_give(&round_lock);
}

/* ---- idle magazines of the own thread ---------------------------------------------------------------- */

/* A magazine that looks the same at two looks is taken for idle; being wrong costs one refill. */
static void trim_magazine(struct heap *heap, unsigned class, bool is_idle) {
  struct magazine *magazine = &heap->magazines[class];
  unsigned block_count = magazine_count(magazine);
  bool is_too_much = capacity_exceeds_budget(heap, class);
  is_idle |= block_count == magazine->seen_count;
  magazine->seen_count = (uint16_t)block_count;
  if (!is_idle && !is_too_much) return;
  if (block_count) batch_flush_whole(heap, class);
  magazine->seen_count = 0;
  if (is_too_much || !block_count) capacity_shrink(heap, class);
}

NOINLINE static void trim(struct heap *heap, bool is_idle) {
  heap_enter(heap);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) trim_magazine(heap, class, is_idle);
  remote_buffer_empty(&heap->remote_buffer, &heap->owner.counters);
  latch_take(&heap->owner);
  owner_drain_all(&heap->owner);
  latch_give(&heap->owner);
  heap_leave(heap);
}

/* A thread that was not here for a decay time since it was due has left all its caches idle. */
static void trim_when_due(struct heap *heap, uint64_t now_ms) {
  if (now_ms < heap->next_trim_ms) return;
  bool has_time = heap->next_trim_ms != 0; /* else the first is an interval from now */
  bool is_idle =
      (options.decay_ms && now_ms >= heap->next_trim_ms + decay_ms()) || commit_is_too_much();
  heap->next_trim_ms = now_ms + scavenge_interval_ms();
  if (has_time) trim(heap, is_idle);
}

/* What it gives back is worth a second call, when it has had time to fill its magazines with what it does not want; else it is
 * left alone until it has done something. */
#define CALL_WORTH_BYTES ((int64_t)32 << 10)
enum { SETTLED_SLOW_PATHS = 64 };

NOINLINE static void answer_call(struct heap *heap) {
  store_relaxed(&heap->is_called, false);
  int64_t bytes = capacity_cached_bytes(heap);
  trim(heap, true);
  uint64_t slow_paths = load_relaxed(&heap->owner.slow_paths);
  store_relaxed(&heap->settled, bytes < CALL_WORTH_BYTES ? slow_paths + SETTLED_SLOW_PATHS : 0);
}

/* ---- free pages in slabs of the own thread -------------------------------------------------------------- */

/* Most slabs that one slow path looks at; and how much sooner the next look comes when there was more to be given back
 * than one look may. */
enum { OWN_SLABS_A_LOOK = 1024, LOOKS_PER_INTERVAL = 8 };

static uint64_t look_interval_ms(void) { return page_decay_ms() / ROUNDS_PER_DECAY; }

NOINLINE static void look_at_pages(struct heap *heap, uint64_t now_ms) {
  struct purge purge = {.now_ms = (uint32_t)now_ms,
                        .page_decay_ms = page_decay_ms(),
                        .bytes_left = ROUND_MAX_BYTES,
                        .page_calls = PAGE_CALLS_A_LOOK};
  heap_enter(heap);
  latch_take(&heap->owner);
  bool is_done = pages_look(&heap->owner, &purge, 0, OWN_SLABS_A_LOOK);
  latch_give(&heap->owner);
  heap_leave(heap);
  heap->has_waiting_pages = purge.work_remains;
  if (!is_done) heap->next_look_ms = now_ms + look_interval_ms() / LOOKS_PER_INTERVAL;
}

static void look_when_due(struct heap *heap, uint64_t now_ms) {
  if (now_ms < heap->next_look_ms) return;
  bool has_time = heap->next_look_ms != 0;
  heap->next_look_ms = now_ms + look_interval_ms();
  if (has_time) look_at_pages(heap, now_ms);
}

/* ---- starting rounds ------------------------------------------------------------------------------------ */

/* Freed ranges beyond their budget go at once, whatever their age, and an eighth of the budget with them:
 * otherwise the next free would come back here. */
enum { EXCESS_DIVISOR = 8 };

COLD static void purge_excess(struct heap *heap, uint64_t excess_bytes) {
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .bytes_left = excess_bytes + options.big_cache_bytes / EXCESS_DIVISOR,
                        .range_calls_max = ROUND_RANGE_CALLS};
  range_purge(&purge, heap_counters(heap));
}

/* Likewise SuperSlabs where a cgroup's limit is near; without one the next round is soon enough. */
COLD static void purge_kept(void) {
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .decay_ms = UINT32_MAX,
                        .bytes_left = ROUND_MAX_BYTES};
  if (!lock_try(&round_lock)) return;
  slab_pool_purge_kept(&purge);
  lock_give(&round_lock);
}

/* The first slow path after memory was freed sets the time of the next round: at once where nothing is to wait,
 * unless the last one was just now. */
static void arm(uint64_t now_ms) {
  uint32_t wanted = PURGE_WANTED;
  if (options.decay_ms)
    store_relaxed(&next_round_ms, now_ms + scavenge_interval_ms());
  else if (load_relaxed(&next_round_ms) < now_ms)
    store_relaxed(&next_round_ms, now_ms);
  cas_strong_acq_rel(&purge_state, &wanted, PURGE_ARMED);
}

static void release_own(struct heap *heap) {
  if (!heap_is_real(heap)) return;
  bool was_busy = load_relaxed(&heap->is_busy); /* under pressure, from within an allocation */
  heap_enter(heap);
  caches_flush(heap);
  latch_take(&heap->owner);
  owner_release_free_slabs(&heap->owner);
  latch_give(&heap->owner);
  if (!was_busy) heap_leave(heap);
}

/* ---- above the soft limit --------------------------------------------------------------------------------- */

/* Who passes the limit gives everything back that is free.  If that was not enough the program lives there: to do it
 * again at once would only cost page faults, so the interval doubles, up to the decay time, when age does the
 * same.  Below the limit all begins anew. */
static ATOMIC(uint64_t) next_squeeze_ms;
static ATOMIC(uint64_t) squeeze_interval_ms;

static void squeeze(struct heap *heap, uint64_t now_ms) {
  struct purge purge = {
      .now_ms = (uint32_t)now_ms, .bytes_left = SIZE_MAX, .page_calls = ROUND_PAGE_CALLS};
  count(heap_counters(heap), COUNT_limit_soft_hits);
  release_own(heap);
  run_unless_running(heap, &purge);
}

COLD static void squeeze_when_due(struct heap *heap) {
  uint64_t now_ms = os_now_coarse_ms(), due_ms = load_relaxed(&next_squeeze_ms);
  if (now_ms < due_ms) return;
  uint64_t interval = load_relaxed(&squeeze_interval_ms);
  if (interval < ROUND_MIN_INTERVAL_MS) interval = ROUND_MIN_INTERVAL_MS;
  /* Whoever moves the time on does it; the order of anything else does not matter. */
  if (!cas_strong_acq_rel(&next_squeeze_ms, &due_ms, now_ms + interval)) return;
  squeeze(heap, now_ms);
  bool helped = !commit_is_too_much();
  interval = helped ? 0 : interval * 2;
  store_relaxed(&squeeze_interval_ms, interval < options.decay_ms ? interval : options.decay_ms);
}

NOINLINE static void run_when_due(struct heap *heap, uint64_t now_ms, uint64_t due_ms) {
  /* Since the round fell due no slow path was taken, or it would have been run: if that is long ago,
   * all that is free has been so for a decay time. */
  bool was_quiet = options.decay_ms && now_ms >= due_ms + decay_ms();
  /* Whoever moves the time of the next round on begins this one. */
  if (!cas_strong_acq_rel(&next_round_ms, &due_ms, now_ms + scavenge_interval_ms())) return;
  heaps_park_lost_threads();
  struct purge purge = {.now_ms = (uint32_t)now_ms,
                        .decay_ms = was_quiet ? 0 : (uint32_t)decay_ms(),
                        .page_decay_ms = was_quiet ? 0 : page_decay_ms(),
                        .bytes_left = ROUND_MAX_BYTES,
                        .page_calls = ROUND_PAGE_CALLS,
                        .range_calls_max = heap_is_real(heap) ? ROUND_RANGE_CALLS : 0};
  run_unless_running(heap, &purge);
  if (purge.range_calls == ROUND_RANGE_CALLS) store_relaxed(&next_round_ms, now_ms + NEXT_PART_MS);
}

RESIDENT uint64_t scavenge_caches_when_due(struct heap *heap) {
  if (commit_is_too_much()) squeeze_when_due(heap);
  if (!heap_is_real(heap)) return 0;
  if (UNLIKELY(load_relaxed(&heap->is_called))) {
    answer_call(heap);
    return 0;
  }
  if (load_relaxed(&purge_state) == PURGE_NONE) return 0;
  uint64_t now_ms = os_now_coarse_ms();
  trim_when_due(heap, now_ms);
  return now_ms;
}

/* Most slow paths come here while there is something to be given back, and find that it is too early. */
RESIDENT NOINLINE static void look_what_is_due(struct heap *heap, uint32_t state, uint64_t now_ms) {
  if (UNLIKELY(!load_relaxed(&has_looked))) look_for_the_first_time();
  uint64_t excess_bytes = range_excess_bytes();
  if (UNLIKELY(excess_bytes)) purge_excess(heap, excess_bytes);
  if (slab_pool_is_over_limit()) purge_kept();
  if (!now_ms) now_ms = os_now_coarse_ms();
  if (state == PURGE_WANTED) arm(now_ms);
  uint64_t due_ms = load_relaxed(&next_round_ms);
  if (heap_is_real(heap)) look_when_due(heap, now_ms);
  if (now_ms >= due_ms) run_when_due(heap, now_ms, due_ms);
}

RESIDENT void scavenge_rest_when_due(struct heap *heap, uint64_t now_ms) {
  uint32_t state = load_acquire(&purge_state); /* pairs with arm: the time is set */
  if (LIKELY(state == PURGE_NONE)) return;
  look_what_is_due(heap, state, now_ms);
}

RESIDENT void scavenge_when_due(struct heap *heap) {
  scavenge_rest_when_due(heap, scavenge_caches_when_due(heap));
}

size_t scavenge_now(struct heap *heap, bool force) {
  heaps_park_lost_threads();
  if (force) release_own(heap);
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .decay_ms = force ? 0 : (uint32_t)decay_ms(),
                        .page_decay_ms = force ? 0 : page_decay_ms(),
                        .bytes_left = SIZE_MAX,
                        .page_calls = SIZE_MAX};
  (force ? run_after_others : run_unless_running)(heap, &purge);
  return purge.purged_bytes;
}

void scavenge_under_pressure(struct heap *heap) {
  heaps_park_lost_threads();
  release_own(heap);
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .bytes_left = SIZE_MAX,
                        .page_calls = SIZE_MAX,
                        .give_addresses = true};
  run_after_others(heap, &purge);
}

void scavenge_after_fork(void) { lock_reset_in_child(&round_lock); }
