#include "reclaim/allowance.h"

#include "cache/capacity.h"
#include "config/options.h"
#include "named/named_heap.h"
#include "purge/purge_credit.h"
#include "ranges/arena.h"
#include "ranges/range_magazine.h"

/* The part of the live bytes that may be free. */
enum { LIVE_DIVISOR = 2 };
/* A decay time above this, ten times the usual one, says that memory is to be kept. */
enum { KEEP_MS = 10000 };

RESIDENT bool allowance_may_sleep(void) {
  return !os_is_multi_threaded() && !load_relaxed(&purge_has_helper) &&
         limits_decay_ms(options.decay_ms) <= KEEP_MS;
}

/* ---- what is live and free ------------------------------------------------------------------- */

bool allowance_is_nearly_all(const struct allowance *now) {
  return now->blocks < now->free / ALLOWANCE_LITTLE_BYTES;
}

/* The number of Big blocks is known. The bytes may be negative for a moment: caches hold what was
 * counted as freed. */
static void count_live(struct allowance *now, int64_t slab_bytes, int64_t large_bytes,
                       uint64_t held) {
  uint64_t in_slabs = slab_bytes > 0 ? (uint64_t)slab_bytes : 0;
  uint64_t in_large = large_bytes > 0 ? (uint64_t)large_bytes : 0;
  now->live = in_slabs + in_large + load_relaxed(&totals.big_live_bytes);
  now->free = held > now->live ? held - now->live : 0;
  now->blocks =
      in_slabs / MID_MAX_BYTES + in_large / LARGE_MAX_BYTES + load_relaxed(&totals.big_live_blocks);
}

/* In the magazines of all heaps. */
static int64_t cached_bytes(void) {
  int64_t bytes = 0;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    bytes += capacity_cached_bytes(heap_of_owner(owner));
  return bytes;
}

/* All heaps count, also of threads that ended. */
RESIDENT static void count_all(struct allowance *now, int64_t large, uint64_t held) {
  int64_t slabs = 0;
  uint64_t cacheable = 0;
  unsigned left = ALLOWANCE_OWNERS_MAX + 1;
  struct owner *owner = owners_first();
  for (; owner && left; owner = owner->next_of_all, left--) {
    slabs += load_relaxed(&owner->bytes_out);
    cacheable += (uint64_t)heap_of_owner(owner)->capacity_bytes;
  }
  const struct hak_heap *named;
  for (uint32_t number = 0; left && (named = named_next(&number)); left--)
    slabs += load_relaxed(&named->owner.bytes_out);
  if (!left) { /* unknown: all is live */
    *now = (struct allowance){.live = UINT64_MAX, .blocks = UINT64_MAX, .may_sleep = true};
    return;
  }
  large -= (int64_t)range_magazines_bytes();
  /* Free blocks in magazines count as live; only where they may hide that nearly all is free is a
   * walk worth its price. */
  count_live(now, slabs, large, held);
  uint64_t parts = (now->free + cacheable) / ALLOWANCE_LITTLE_BYTES;
  if (parts && now->blocks < parts + cacheable / MID_MAX_BYTES)
    count_live(now, slabs - cached_bytes(), large, held);
}

/* Where threads run, ranges alone, without a walk over all heaps. */
RESIDENT static void count_now(struct allowance *now) {
  int64_t large = (int64_t)load_relaxed(&totals.large_live_bytes);
  uint64_t held = load_relaxed(&totals.committed_bytes) - load_relaxed(&totals.metadata_bytes);
  if (!now->may_sleep) {
    count_live(now, 0, large, 0);
    now->free = arenas_bytes_of(RANGE_DIRTY);
  } else if (held <= ALLOWANCE_LITTLE_BYTES) {
    now->free = held;
  } else {
    count_all(now, large, held);
  }
}

/* ---- how much may stay ----------------------------------------------------------------------- */

RESIDENT struct allowance allowance_measure(void) {
  struct allowance now = {.may_sleep = allowance_may_sleep()};
  uint64_t budget = limits_budget(options.big_cache_bytes);
  count_now(&now);
  if (!budget) return now;
  now.least = limits_at_most(now.live / LIVE_DIVISOR);
  now.most = limits_at_most(budget + now.live / LIVE_DIVISOR);
  return now;
}

/* A program that has freed more than the budget, or nearly all, is likely to free everything; the
 * live bytes then, 0: it has grown since. */
static bool is_falling(const struct allowance *now) {
  static ATOMIC(uint64_t) falling_from; /* relaxed: an error costs one round more, or one later */
  uint64_t from = load_relaxed(&falling_from);
  bool has_grown = now->live > from + ALLOWANCE_MUCH_BYTES;
  bool begins = now->free > now->most || allowance_is_nearly_all(now);
  if (from ? has_grown : begins) store_relaxed(&falling_from, from = from ? 0 : now->live + 1);
  return from;
}

static uint64_t young_room(const struct allowance *now, int64_t credit) {
  /* It would break huge pages. */
  uint64_t early = credit > 0 && !huge_is_default() ? (uint64_t)credit : 0;
  uint64_t young = now->free < now->most ? now->free : now->most;
  return early < young - now->least ? young - early : now->least;
}

/* Where so small a part is left all free pages of slabs in use go, else those that pay for a
 * call. */
static size_t early_run_bytes(const struct allowance *now, int64_t credit) {
  if (!now->may_sleep) return SIZE_MAX;
  if (now->live < now->free / ALLOWANCE_SMALL_DIVISOR) return 0;
  return credit > 0 ? PURGE_CALL_BYTES : SIZE_MAX;
}

/* Near a cgroup's limit nothing stays longer. */
void allowance_decide(struct allowance *now) {
  int64_t credit = purge_credit();
  bool is_early = now->may_sleep && now->free > now->least;
  bool falls = is_early && is_falling(now);
  now->young = falls ? now->least : is_early ? young_room(now, credit) : now->most;
  now->lot = falls ? ALLOWANCE_LITTLE_BYTES : ALLOWANCE_MUCH_BYTES;
  now->debt = credit < 0 && !load_relaxed(&limits.decay_cut) ? (uint64_t)-credit : 0;
  now->early_run_bytes = early_run_bytes(now, credit);
}

/* How many times the bounds of a step are needed to give back ranges in equal parts at each of
 * these frees. To free the last of a few Big blocks takes as long as to unmap them all would. */
static uint64_t steps_a_free(const struct allowance *now) {
  uint64_t steps = arenas_bytes_of(RANGE_DIRTY) / ALLOWANCE_LITTLE_BYTES / (now->blocks + 1);
  return steps && now->may_sleep ? steps : 1;
}

void allowance_bound(struct purge *purge) {
  struct allowance now = allowance_measure();
  allowance_decide(&now);
  purge->idle_bytes = now.free;
  purge->room_bytes = now.young;
  purge->wanted_bytes = now.debt;
  purge->early_run_bytes = now.early_run_bytes;
  uint64_t steps = steps_a_free(&now);
  purge->end_ns += (steps - 1) * PURGE_STEP_NS;
  purge->calls_left *= steps;
}
