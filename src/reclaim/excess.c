#include "reclaim/excess.h"

#include "cache/capacity.h"
#include "cache/divert.h"
#include "config/limits.h"
#include "config/options.h"
#include "os/os.h"
#include "pool/purge_credit.h"
#include "reclaim/reclaim.h"
#include "reclaim/regret.h"

/* Too much: more than the budget of free memory, and half of what is live.  A program that has come so far and goes on freeing is
 * about to have nothing: from then on everything goes, in pieces of so many bytes. */
#define EXCESS_BYTES ((uint64_t)16 << 20)
enum { EXCESS_DIVISOR = 2, SOONER_DIVISOR = 16 };
/* Pages are looked for where less than this part of what is held is live: else too few are free. */
enum { SCATTERED_DIVISOR = 40, SWING = 4 };
/* A longer decay time says that memory is to be kept. */
enum { DECAY_MAX_MS = 10000 };

/* In a process with one thread; relaxed, as it may have more later. */
enum stage {
  NOTHING,
  GIVING,   /* slabs and ranges, step by step */
  WAITING,  /* until it has stopped freeing */
  FLUSHED,  /* its caches are empty: whatever it holds now is live */
  SCANNING, /* its slabs for free pages, step by step */
};
static ATOMIC(uint32_t) stage;
/* Where the last look ended: what is left is in slabs in use.  Since then the least excess, and the most that was live. */
static ATOMIC(uint64_t) stuck_bytes, stuck_live_bytes;
static ATOMIC(uint64_t) seen_live_bytes;
static ATOMIC(uint64_t) turns_left; /* WAITING: slow paths; SCANNING: steps */

/* A program that swings neither ends nor goes on: it would be waited for, each free the slow way, for ever.  So many times what
 * one wait takes are enough since the last time that waiting brought something; then its pages are looked for all the same,
 * and it is not waited for again for some decay times. */
enum { PATIENCE = 8, PAUSE_DECAYS = 8, PAUSE_MIN_MS = 1000 };
#define WORTH_BYTES ((uint64_t)1 << 20)
static ATOMIC(uint64_t) turns_waited, waited_for_bytes;
static ATOMIC(uint64_t) no_wait_until_ms;

static uint64_t live_bytes(const struct heap *heap) {
  int64_t bytes = load_relaxed(&heap->owner.bytes_out);
  return (bytes > 0 ? (uint64_t)bytes : 0) + load_relaxed(&totals.large_live_bytes) +
         load_relaxed(&totals.big_live_bytes);
}

static uint64_t excess_over(uint64_t live) {
  uint64_t held = load_relaxed(&totals.committed_bytes) - load_relaxed(&totals.metadata_bytes);
  return held > live ? held - live : 0;
}

/* It has been too much, and since then the program has taken no more than it has freed. */
static ATOMIC(bool) is_ending;
static ATOMIC(uint64_t) least_live_bytes;

static void note_growth(uint64_t live) {
  if (live < load_relaxed(&least_live_bytes)) store_relaxed(&least_live_bytes, live);
  if (live > load_relaxed(&least_live_bytes) + EXCESS_BYTES) store_relaxed(&is_ending, false);
}

/* So little is live that most pages of the slabs must be free. */
static bool is_scattered(uint64_t excess, uint64_t live) {
  return excess > EXCESS_BYTES && excess / SCATTERED_DIVISOR > live;
}

static bool is_too_much(uint64_t excess, uint64_t live) {
  /* A little sooner than ranges alone have it, whose own budget is kept by and by. */
  uint64_t budget = options.big_cache_bytes - options.big_cache_bytes / SOONER_DIVISOR;
  if (load_relaxed(&is_ending)) budget = EXCESS_BYTES;
  return excess > load_relaxed(&stuck_bytes) + budget + live / EXCESS_DIVISOR;
}

static bool may_have_stopped(uint64_t excess, uint64_t live) {
  return live < load_relaxed(&stuck_live_bytes) / 2 && is_scattered(excess, live);
}

static void stop(uint64_t excess, uint64_t live) {
  store_relaxed(&stuck_bytes, excess);
  store_relaxed(&stuck_live_bytes, live);
  store_relaxed(&stage, NOTHING);
}

/* Has it stopped?  Asked after so many slow paths, most of them one free each: of a thread that only frees at least so many bytes. */
enum { WAIT_MIN = 256, WAIT_DIVISOR = 1024, LEAST_FREE_BYTES = 8 };

static uint64_t turns_to_wait(uint64_t live) { return WAIT_MIN + live / WAIT_DIVISOR; }

static bool has_stopped(uint64_t live, uint64_t live_before) {
  return live + turns_to_wait(live_before) * LEAST_FREE_BYTES > live_before;
}

static void wait_for_the_end(uint64_t live) {
  store_relaxed(&seen_live_bytes, live);
  store_relaxed(&turns_left, turns_to_wait(live));
  store_relaxed(&stage, WAITING);
}

static void begin_scan(const struct owner *owner) {
  uint64_t slabs = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    slabs += load_relaxed(&owner->bins[class].slab_count);
  store_relaxed(&turns_left, slabs / RECLAIM_SLABS_A_STEP + 1);
  store_relaxed(&stage, SCANNING);
}

static bool is_out_of_patience(uint64_t live) {
  uint64_t waited = load_relaxed(&turns_waited) + 1;
  store_relaxed(&turns_waited, waited);
  return waited > PATIENCE * turns_to_wait(live);
}

/* Likewise: what it has given is taken again all the time. */
static bool is_in_vain(void) {
  regret_look((uint32_t)os_now_coarse_ms());
  return !purge_credit_allows(0);
}

static void wait_no_more(void) {
  uint64_t pause_ms = PAUSE_DECAYS * reclaim_decay_ms();
  store_relaxed(&no_wait_until_ms,
                os_now_coarse_ms() + (pause_ms > PAUSE_MIN_MS ? pause_ms : PAUSE_MIN_MS));
  store_relaxed(&turns_waited, 0);
}

/* The system may refuse pages (of a program that has locked its memory, say): so many steps in a row that bring nothing. */
enum { FRUITLESS_MAX = 16 };
static ATOMIC(uint32_t) fruitless_steps;

/* Ranges are counted before the system is asked; pages of slabs in use are not in what is committed. */
static uint64_t bytes_given(enum reclaim_reason reason, const struct purge *purge,
                            uint64_t committed_before) {
  uint64_t committed = load_relaxed(&totals.committed_bytes);
  if (reason == RECLAIM_EXCESS_PAGES) return purge->purged_bytes;
  return committed < committed_before ? committed_before - committed : 0;
}

static void note_worth(uint64_t given) {
  uint64_t bytes = load_relaxed(&waited_for_bytes) + given;
  bool is_worth_it = bytes >= WORTH_BYTES;
  if (is_worth_it) store_relaxed(&turns_waited, 0);
  store_relaxed(&waited_for_bytes, is_worth_it ? 0 : bytes);
}

/* A step; true when more is left, and the last ones brought something. */
static bool give(struct heap *heap, enum reclaim_reason reason) {
  uint64_t committed = load_relaxed(&totals.committed_bytes);
  struct purge purge = reclaim(heap, reason);
  regret_note_given(&purge, true);
  uint64_t given = bytes_given(reason, &purge, committed);
  note_worth(given);
  uint32_t fruitless = purge.is_cut && !given ? load_relaxed(&fruitless_steps) + 1 : 0;
  bool goes_on = purge.is_cut && fruitless < FRUITLESS_MAX;
  store_relaxed(&fruitless_steps, goes_on ? fruitless : 0);
  return goes_on;
}

static void give_slabs(struct heap *heap, uint64_t seen_live) {
  uint64_t now_live = live_bytes(heap);
  bool goes_on = load_relaxed(&stage) == FLUSHED && !has_stopped(now_live, seen_live);
  if (goes_on && !load_relaxed(&is_ending)) { /* it may take as much again at once */
    wait_for_the_end(now_live);
    return;
  }
  if (is_in_vain()) {
    stop(excess_over(now_live), now_live);
    return;
  }
  if (give(heap, RECLAIM_EXCESS)) return;
  uint64_t live = live_bytes(heap), excess = excess_over(live);
  if (!is_scattered(excess, live / SWING))
    stop(excess, live);
  else if (load_relaxed(&stage) == FLUSHED && has_stopped(live, seen_live))
    begin_scan(&heap->owner);
  else
    wait_for_the_end(live);
}

static void scan(struct heap *heap) {
  if (give(heap, RECLAIM_EXCESS_PAGES)) return;
  uint64_t turns = load_relaxed(&turns_left) - 1;
  store_relaxed(&turns_left, turns);
  uint64_t live = live_bytes(heap);
  if (!turns) stop(excess_over(live), live);
}

static void go_on(struct heap *heap) {
  switch (load_relaxed(&stage)) {
    case WAITING: break;
    case SCANNING: scan(heap); break;
    default: give_slabs(heap, load_relaxed(&seen_live_bytes));
  }
  if (load_relaxed(&stage) != NOTHING && !options.harden) heap_divert(heap);
}

RESIDENT static void begin_if_too_much(struct heap *heap) {
  uint64_t live = live_bytes(heap), excess = excess_over(live);
  if (excess < load_relaxed(&stuck_bytes)) store_relaxed(&stuck_bytes, excess);
  if (live > load_relaxed(&stuck_live_bytes)) store_relaxed(&stuck_live_bytes, live);
  note_growth(live);
  bool is_much = is_too_much(excess, live);
  if (LIKELY(!is_much && !may_have_stopped(excess, live))) return;
  if (!is_much && os_now_coarse_ms() < load_relaxed(&no_wait_until_ms)) return;
  if (is_in_vain()) return;
  if (!is_much) {
    wait_for_the_end(live);
    return;
  }
  if (!load_relaxed(&is_ending)) store_relaxed(&least_live_bytes, live);
  store_relaxed(&is_ending, true);
  store_relaxed(&stage, GIVING);
}

RESIDENT void excess_look(struct heap *heap) {
  if (os_is_multi_threaded() || load_relaxed(&purge_has_helper)) return;
  if (reclaim_decay_ms() > DECAY_MAX_MS) return;
  if (LIKELY(load_relaxed(&stage) == NOTHING)) begin_if_too_much(heap);
  if (UNLIKELY(load_relaxed(&stage) != NOTHING)) go_on(heap);
}

/* It goes on, and has freed so much that the few blocks in its magazines are what keeps slabs. */
enum { ASK_EVERY = 16, FALL_DIVISOR = 8 };
#define FALL_BYTES ((uint64_t)64 << 10)

static bool has_fallen(const struct heap *heap) {
  int64_t cached = capacity_cached_bytes(heap);
  uint64_t live = live_bytes(heap) - (uint64_t)cached, before = load_relaxed(&seen_live_bytes);
  return live + before / FALL_DIVISOR + FALL_BYTES < before;
}

/* It takes more than it frees: as much again, perhaps. */
static void begin_anew(uint64_t live) {
  uint64_t excess = excess_over(live);
  if (is_scattered(excess, live / SWING)) /* a request may be a part of what is live */
    wait_for_the_end(live);
  else
    stop(excess, live);
}

RESIDENT void excess_flush_when_due(struct heap *heap) {
  if (LIKELY(load_relaxed(&stage) != WAITING)) return;
  if (os_is_multi_threaded()) return; /* since then: its heap is not all that is live any more */
  uint64_t live = live_bytes(heap);
  if (is_out_of_patience(live)) {
    wait_no_more();
    begin_scan(&heap->owner);
    return;
  }
  if (live > load_relaxed(&seen_live_bytes) + FALL_BYTES) {
    begin_anew(live);
    return;
  }
  uint64_t turns = load_relaxed(&turns_left) - 1;
  store_relaxed(&turns_left, turns);
  if (turns && (turns % ASK_EVERY || !has_fallen(heap))) return;
  if (turns && !load_relaxed(&is_ending)) {
    wait_for_the_end(live); /* it may take as much again at once */
    return;
  }
  reclaim(heap, RECLAIM_EXCESS_OWN);
  store_relaxed(&stage, FLUSHED);
}
