#include "reclaim/steps.h"

#include "cache/capacity.h"
#include "cache/divert.h"
#include "config/limits.h"
#include "config/options.h"
#include "reclaim/allowance.h"

/* Stuck bytes become free as the blocks between are freed: they are tried again when this part of
 * those has gone. With a half 130 MiB of 16 KiB pages stay where now 70 do (test_steps.c). */
enum { STUCK_DIVISOR = 4 };

/* Relaxed, all of this file: an error costs one step more, or one later. */
static ATOMIC(bool) is_giving;

/* ---- what is stuck --------------------------------------------------------------------------- */

static ATOMIC(uint64_t) stuck_bytes, stuck_live_bytes; /* the live bytes then */

static void note_stuck(uint64_t bytes, uint64_t live) {
  store_relaxed(&stuck_bytes, bytes);
  store_relaxed(&stuck_live_bytes, live);
}

/* Bytes that a step might give. */
static uint64_t movable(const struct allowance *now) {
  uint64_t stuck = load_relaxed(&stuck_bytes), live = load_relaxed(&stuck_live_bytes);
  if (now->free < stuck) store_relaxed(&stuck_bytes, stuck = now->free);
  return now->live < live - live / STUCK_DIVISOR ? now->free : now->free - stuck;
}

void steps_note_round(const struct purge *purge) {
  if (purge->work_remains || purge->is_cut) return;
  struct allowance now = allowance_measure();
  if (now.may_sleep) note_stuck(now.free, now.live);
}

/* ---- giving ---------------------------------------------------------------------------------- */

RESIDENT bool steps_are_due(void) { return load_relaxed(&is_giving); }

void steps_note(const struct purge *purge) {
  if (!purge->now_ms) return; /* another thread was at it */
  uint64_t target = purge->room_bytes + purge->wanted_bytes;
  uint64_t left = purge->idle_bytes > target ? purge->idle_bytes - target : 0;
  bool goes_on = left && purge->purged_bytes && (purge->is_cut || !purge->slabs_left);
  if (!goes_on) note_stuck(left, allowance_measure().live);
  store_relaxed(&is_giving, goes_on);
}

/* All remaining blocks may fit into the magazines: then no slow path comes any more, and each of
 * the last blocks keeps a page. So magazines that could keep more pages than may be free are
 * shrunk: with room for less than that, a fall is seen with all full. */
void steps_shrink_magazines(struct heap *heap) {
  struct allowance now = allowance_measure();
  if (now.may_sleep && now.least <= (uint64_t)heap->capacity_bytes)
    capacity_shrink_all(heap, (unsigned)(ALLOWANCE_MUCH_BYTES / 2 / os_page_bytes()));
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Each look costs a free 20 to 100 ns. If other slow paths look too, at most 10 looks a millisecond
 * are made, within a decay time; else, and where nearly all has been freed, the thread keeps
 * looking until the clock ticks. */
enum { PASSES_A_MS = 10 };
static ATOMIC(uint64_t) looked_ms, passes_left, slow_paths_seen;

/* One pass in as many reads the clock. */
RESIDENT bool steps_pass(void) {
  uint64_t left = load_relaxed(&passes_left);
  if (!left) return false;
  store_relaxed(&passes_left, left - 1);
  if (left % PASSES_A_MS) return true;
  return os_now_coarse_ms() == load_relaxed(&looked_ms);
}

static void wait(const struct heap *heap, const struct allowance *now, uint64_t now_ms) {
  uint64_t before_ms = load_relaxed(&looked_ms);
  uint64_t passed_ms = before_ms ? now_ms - before_ms : os_processor_ms();
  bool is_nearly_all = allowance_is_nearly_all(now);
  store_relaxed(&looked_ms, now_ms);
  if (!passed_ms && !is_nearly_all) return;
  uint64_t slow_paths = load_relaxed(&heap->owner.slow_paths);
  bool takes_others = slow_paths != load_relaxed(&slow_paths_seen);
  uint64_t left = load_relaxed(&passes_left) + passed_ms * PASSES_A_MS;
  uint64_t most = limits_decay_ms(options.decay_ms) * PASSES_A_MS;
  store_relaxed(&slow_paths_seen, slow_paths);
  if (!takes_others || is_nearly_all) left = most = UINT32_MAX;
  if (left > most) left = most;
  store_relaxed(&passes_left, left - left % PASSES_A_MS); /* the first pass reads the clock */
}

/* ---- a slow path ----------------------------------------------------------------------------- */

/* Only once more is free than that is the credit asked for. */
RESIDENT bool steps_begin(const struct heap *heap, uint64_t now_ms) {
  if (steps_are_due()) return false;
  struct allowance now = allowance_measure();
  uint64_t least = now.least + ALLOWANCE_LITTLE_BYTES, little = least < now.most ? least : now.most;
  uint64_t bytes = LIKELY(now.free <= little) ? 0 : movable(&now);
  if (LIKELY(bytes <= little)) return false;
  allowance_decide(&now);
  if (bytes > now.most + now.debt || bytes > now.young + now.debt + now.lot) {
    store_relaxed(&is_giving, true);
    return now.may_sleep;
  }
  if (now.may_sleep) wait(heap, &now, now_ms);
  return false;
}

RESIDENT void steps_divert(struct heap *heap, uint64_t now_ms) {
  if (steps_are_due() && allowance_may_sleep())
    heap_divert(heap, HEAP_POKE);
  else if (load_relaxed(&passes_left) && load_relaxed(&looked_ms) == now_ms)
    heap_divert(heap, HEAP_WAIT);
}
