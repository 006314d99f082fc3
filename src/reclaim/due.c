#include "reclaim/due.h"

#include "cache/capacity.h"
#include "cache/divert.h"
#include "cache/flush.h"
#include "config/options.h"
#include "map/commit.h"
#include "purge/purge_credit.h"
#include "reclaim/allowance.h"
#include "reclaim/reclaim.h"
#include "reclaim/steps.h"
#include "slab/adopt.h"

/* ---- rounds by age --------------------------------------------------------------------------- */

ATOMIC(uint64_t) reclaim_next_round_ms;

/* The first slow path after memory was freed sets the time of the next round: at once without a
 * decay time, unless one was just now. */
RESIDENT static void arm(uint64_t now_ms) {
  uint32_t wanted = PURGE_WANTED;
  if (options.decay_ms)
    store_relaxed(&reclaim_next_round_ms, now_ms + reclaim_interval_ms());
  else if (load_relaxed(&reclaim_next_round_ms) < now_ms)
    store_relaxed(&reclaim_next_round_ms, now_ms);
  cas_strong_acq_rel(&purge_state, &wanted, PURGE_ARMED);
}

/* The thread that advances the time of the next round begins this one. */
static bool begin_round(uint64_t now_ms, uint64_t due_ms) {
  return cas_strong_acq_rel(&reclaim_next_round_ms, &due_ms, now_ms + reclaim_interval_ms());
}

/* The helper runs the round, unless it gets no processor. A cut round goes on in the next slow
 * path, or free. */
NOINLINE static void run_when_due(struct heap *heap, uint64_t now_ms, uint64_t due_ms) {
  uint64_t late_ms = due_ms + (load_relaxed(&purge_has_helper) ? reclaim_interval_ms() : 0);
  if (now_ms < late_ms || !reclaim_is_ours() || !begin_round(now_ms, due_ms)) return;
  bool is_old = options.decay_ms && now_ms >= late_ms + reclaim_decay_ms() && purge_credit() >= 0;
  struct purge purge = reclaim(heap, is_old ? RECLAIM_TICK_OF_ALL : RECLAIM_TICK);
  if (now_ms < heap->next_scan_ms) steps_note_round(&purge); /* else pages are not known yet */
  if (!purge.is_cut) return;
  store_relaxed(&reclaim_next_round_ms, is_old ? due_ms : now_ms);
  if (heap_is_real(heap)) heap_divert(heap, HEAP_POKE);
}

bool reclaim_round_when_due(struct heap *heap) {
  uint64_t now_ms = os_now_coarse_ms();
  if (load_acquire(&purge_state) == PURGE_WANTED) arm(now_ms);
  uint64_t due_ms = load_relaxed(&reclaim_next_round_ms);
  if (now_ms < due_ms || !begin_round(now_ms, due_ms)) return false;
  struct purge purge = reclaim(heap, RECLAIM_ROUND);
  bool goes_on = purge.is_cut && purge.purged_bytes;
  if (goes_on) store_relaxed(&reclaim_next_round_ms, now_ms);
  return goes_on;
}

/* ---- above the soft limit -------------------------------------------------------------------- */

/* A thread that passes the limit purges all free memory. If that was not enough, the live memory
 * itself is above the limit: to repeat it at once would only cost page faults, so the interval
 * doubles, up to the decay time, at which age does the same. Below the limit the interval is reset.
 * Growth beyond the last round's memory does not wait for the time: live blocks may have been freed
 * since, and a cgroup's limit may be near. A cut round that goes on stays one round, as the program
 * may take again all that went. */
static ATOMIC(uint64_t) next_limit_ms;
static ATOMIC(uint64_t) limit_cut_ms; /* when a round was cut; it goes on at once */
static ATOMIC(uint64_t) next_limit_bytes;
static ATOMIC(uint64_t) limit_interval_ms;

COLD static void give_above_limit(struct heap *heap) {
  uint64_t now_ms = os_now_coarse_ms(), due_ms = load_relaxed(&next_limit_ms);
  uint64_t held_bytes = load_relaxed(&totals.committed_bytes);
  bool is_time = now_ms >= due_ms;
  if (!is_time && held_bytes < load_relaxed(&next_limit_bytes)) return;
  if (!reclaim_is_ours()) return;
  uint64_t interval = load_relaxed(&limit_interval_ms);
  if (interval < PURGE_LEAST_MS) interval = PURGE_LEAST_MS;
  /* acq_rel: orders nothing; the thread that advances the time does it. */
  if (!cas_strong_acq_rel(&next_limit_ms, &due_ms, now_ms + interval)) return;
  uint64_t next_bytes = held_bytes + load_relaxed(&limits.soft_bytes) / ALLOWANCE_SMALL_DIVISOR;
  bool goes_on = now_ms < load_relaxed(&limit_cut_ms) + PURGE_LEAST_MS;
  if (!goes_on || next_bytes > load_relaxed(&next_limit_bytes))
    store_relaxed(&next_limit_bytes, next_bytes);
  reclaim_own_caches(heap);
  struct purge purge = reclaim(heap, RECLAIM_TICK_OF_ALL);
  if (purge.is_cut) {
    store_relaxed(&next_limit_ms, now_ms); /* the next slow path goes on */
    store_relaxed(&limit_cut_ms, now_ms);
    return;
  }
  count(heap_counters(heap), COUNT_limit_soft_hits);
  if (!commit_is_too_much())
    interval = 0;
  else if (is_time)
    interval *= 2;
  store_relaxed(&limit_interval_ms, interval < options.decay_ms ? interval : options.decay_ms);
}

/* ---- own caches, by age ---------------------------------------------------------------------- */

/* A magazine that is the same at two checks counts as idle; an error costs one refill. */
static void flush_magazine(struct heap *heap, unsigned class, bool is_idle) {
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

NOINLINE bool reclaim_flush_magazines(struct heap *heap, bool is_idle) {
  heap_enter(heap);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) flush_magazine(heap, class, is_idle);
  latch_take(&heap->owner);
  bool is_done = owner_drain_all(&heap->owner, PURGE_SLABS_A_STEP) != 0;
  latch_give(&heap->owner);
  if (steps_are_due()) steps_shrink_magazines(heap);
  heap_leave(heap);
  return is_done;
}

/* Once in an interval: magazines that have not changed since the last check are flushed. After a
 * decay time all are idle. */
RESIDENT static void flush_when_due(struct heap *heap, uint64_t now_ms) {
  if (now_ms < heap->next_flush_ms) return;
  bool has_time = heap->next_flush_ms != 0; /* else the first is an interval from now */
  bool is_idle = (options.decay_ms && now_ms >= heap->next_flush_ms + reclaim_decay_ms()) ||
                 commit_is_too_much();
  bool is_done = !has_time || reclaim_flush_magazines(heap, is_idle);
  heap->next_flush_ms = now_ms + (is_done ? reclaim_interval_ms() : PURGE_LEAST_MS);
}

/* A thread is not called again until it has refilled as many magazines as it may have. */
NOINLINE static void answer(struct heap *heap) {
  heap_divert(heap, HEAP_POKE); /* not restored: a tool may have poked it meanwhile */
  reclaim_flush_magazines(heap, true);
  store_relaxed(&heap->settled, load_relaxed(&heap->owner.slow_paths) + SLAB_CLASS_COUNT);
}

/* True when a round has called the thread, which took no slow path: all its caches are flushed
 * now. */
RESIDENT static bool answer_call(struct heap *heap) {
  bool is_called = heap_attention(heap) == HEAP_CALL;
  if (UNLIKELY(is_called)) answer(heap);
  return is_called;
}

/* ---- free pages in own slabs ----------------------------------------------------------------- */

NOINLINE static void scan(struct heap *heap, uint64_t now_ms) {
  struct purge purge = reclaim_own_pages(heap);
  heap->has_waiting_pages = purge.work_remains;
  if (purge.is_cut) heap->next_scan_ms = now_ms + PURGE_LEAST_MS;
}

/* Once in an interval, sooner when it was cut: free pages of its slabs in use wait, and old ones
 * are purged. */
RESIDENT static void scan_when_due(struct heap *heap, uint64_t now_ms) {
  if (now_ms < heap->next_scan_ms) return;
  bool has_time = heap->next_scan_ms != 0;
  heap->next_scan_ms = now_ms + reclaim_page_decay_ms() / RECLAIM_ROUNDS_PER_DECAY;
  if (has_time) scan(heap, now_ms);
}

/* ---- slow paths ------------------------------------------------------------------------------ */

RESIDENT uint64_t reclaim_caches_when_due(struct heap *heap) {
  if (commit_is_too_much()) give_above_limit(heap);
  if (!heap_is_real(heap) || answer_call(heap)) return 0;
  if (load_relaxed(&purge_state) == PURGE_NONE) return 0;
  uint64_t now_ms = os_now_coarse_ms();
  flush_when_due(heap, now_ms);
  if (UNLIKELY(steps_begin(heap, now_ms))) reclaim_flush_magazines(heap, true);
  return now_ms;
}

/* Does one of these steps: each may take as long as a slow path should. The others are due in the
 * next one. */
RESIDENT static void do_one(struct heap *heap, uint64_t now_ms) {
  uint64_t due_ms = load_relaxed(&reclaim_next_round_ms);
  if (UNLIKELY(steps_are_due())) {
    struct purge purge = reclaim(heap, RECLAIM_TICK);
    steps_note(&purge);
  } else if (now_ms >= due_ms) {
    run_when_due(heap, now_ms, due_ms);
  } else if (heap_is_real(heap)) {
    scan_when_due(heap, now_ms);
  }
}

/* Most slow paths come here while memory waits to be purged, and find that it is too early. */
RESIDENT NOINLINE static void do_what_is_due(struct heap *heap, uint32_t state, uint64_t now_ms) {
  reclaim_poll_limits_once();
  if (!now_ms) now_ms = os_now_coarse_ms();
  if (state == PURGE_WANTED) arm(now_ms);
  if (heap_is_real(heap)) steps_divert(heap, now_ms);
  do_one(heap, now_ms);
}

RESIDENT void reclaim_rest_when_due(struct heap *heap, uint64_t now_ms) {
  uint32_t state = load_acquire(&purge_state); /* pairs with arm: the time is set */
  if (LIKELY(state == PURGE_NONE)) return;
  do_what_is_due(heap, state, now_ms);
}

RESIDENT void reclaim_when_due(struct heap *heap) {
  reclaim_rest_when_due(heap, reclaim_caches_when_due(heap));
}
