#include "reclaim/excess.h"

#include "cache/capacity.h"
#include "cache/divert.h"
#include "config/options.h"
#include "large/range_magazine.h"
#include "os/os.h"
#include "pool/purge_credit.h"
#include "reclaim/reclaim.h"
#include "reclaim/regret.h"

/* Too much: more than the budget of free memory, and half of the live bytes. */
#define EXCESS_BYTES ((uint64_t)16 << 20)
enum { EXCESS_DIVISOR = 2, SOONER_DIVISOR = 16 };
/* A program that goes on freeing is likely to free everything: each time that it has freed 1/FALL_DIVISOR of the live bytes, and
 * FALL_BYTES_A_PAGE for each page of EXCESS_BYTES, all free memory above EXCESS_BYTES is purged. */
enum { FALL_DIVISOR = 4 };
/* Bytes for each page of EXCESS_BYTES: the last blocks may keep one page each. */
enum { FALL_BYTES_A_PAGE = 16 };
/* Pages are scanned for only where live bytes are below this part of the free bytes: else too few pages are free. */
enum { SCATTERED_DIVISOR = 40, SWING = 4 };
/* Scan for free pages only while each system call recovers SCAN_BYTES_A_CALL; else wait until live bytes have halved, as partly free
 * slabs will soon be wholly free. All pages are scanned for when less than LAST_BYTES are live: the last frees may stay in magazines.
 * */
enum { SCAN_BYTES_A_CALL = 16 << 10, SCAN_DIVISOR = 2 };
#define LAST_BYTES ((uint64_t)1 << 20)
/* A longer decay time says that memory is to be kept. */
enum { DECAY_MAX_MS = 10000 };

/* In a process with one thread; relaxed: it may have more threads later. */
enum stage {
  NOTHING,
  WAITING,  /* until it has stopped freeing */
  BEGUN,    /* the next free flushes its caches before */
  GIVING,   /* slabs and ranges, step by step */
  SCANNING, /* its slabs for free pages, step by step */
};
static ATOMIC(uint32_t) stage;
static ATOMIC(uint64_t) given_live_bytes; /* live bytes at the last step; 0: grown since */
static ATOMIC(uint64_t) stuck_bytes;      /* the least excess since: held by slabs in use */
static ATOMIC(uint64_t) turns_left;       /* WAITING: slow paths; SCANNING: steps */
static ATOMIC(uint64_t) scan_below_bytes; /* scan again when fewer bytes are in use */
static ATOMIC(bool) is_at_rest;           /* it has stopped freeing */

/* ---- how much ---------------------------------------------------------------------------------------------- */

/* Adds the live blocks of other heaps: of threads that have ended, or that a fork did not copy. Beyond HEAPS_MAX heaps all bytes count
 * as live. */
RESIDENT static uint64_t live_bytes(void) {
  enum { HEAPS_MAX = 16 };
  int64_t bytes =
      (int64_t)(load_relaxed(&totals.large_live_bytes) + load_relaxed(&totals.big_live_bytes));
  unsigned heaps = 0;
  for (const struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    if (++heaps > HEAPS_MAX) return UINT64_MAX;
    bytes += load_relaxed(&owner->bytes_out);
  }
  bytes -= (int64_t)range_magazines_bytes();
  return bytes > 0 ? (uint64_t)bytes : 0;
}

static uint64_t excess_over(uint64_t live) {
  uint64_t held = load_relaxed(&totals.committed_bytes) - load_relaxed(&totals.metadata_bytes);
  return held > live ? held - live : 0;
}

static bool is_scattered(uint64_t excess, uint64_t live) {
  return excess / SCATTERED_DIVISOR > live;
}

static uint64_t excess_pages(void) { return EXCESS_BYTES / os_page_bytes(); }

static bool has_fallen(uint64_t live, uint64_t before) {
  uint64_t least = excess_pages() * FALL_BYTES_A_PAGE;
  return live + least < before && live < before - before / FALL_DIVISOR;
}

static bool is_too_much(uint64_t excess, uint64_t live) {
  /* A little below the budget of ranges, which is enforced step by step. */
  uint64_t budget = options.big_cache_bytes - options.big_cache_bytes / SOONER_DIVISOR;
  uint64_t before = load_relaxed(&given_live_bytes);
  if (before) return excess > EXCESS_BYTES && has_fallen(live, before);
  return excess > load_relaxed(&stuck_bytes) + budget + live / EXCESS_DIVISOR;
}

/* Whether purged memory is taken again all the time. */
static bool is_in_vain(void) {
  regret_judge((uint32_t)os_now_coarse_ms());
  return !purge_credit_allows(0);
}

static void stop(uint64_t excess) {
  store_relaxed(&stuck_bytes, excess);
  store_relaxed(&stage, NOTHING);
}

static void begin(uint64_t live, bool at_rest) {
  store_relaxed(&given_live_bytes, live ? live : 1);
  store_relaxed(&is_at_rest, at_rest);
  store_relaxed(&stage, BEGUN);
}

/* ---- less than the budget ---------------------------------------------------------------------------------- */

/* Wait for the end of a phase of frees, as the program may take as much again at once: a number of slow paths, most of which free at
 * least LEAST_FREE_BYTES. The waits of a program that swings are bounded, as each takes the slow path at every free. */
enum { WAIT_MIN = 64, WAIT_DIVISOR = 4096, LEAST_FREE_BYTES = 8, WAITS_MAX = 32 };
static ATOMIC(uint64_t) seen_live_bytes;
static ATOMIC(uint32_t) waits_left;

static uint64_t turns_to_wait(uint64_t live) { return WAIT_MIN + live / WAIT_DIVISOR; }

/* Live bytes without those in magazines, which change a batch at a time. */
static uint64_t used_bytes(const struct heap *heap) {
  return live_bytes() - (uint64_t)capacity_cached_bytes(heap);
}

static bool may_end(const struct heap *heap, uint64_t excess, uint64_t live) {
  if (load_relaxed(&given_live_bytes) || excess < load_relaxed(&stuck_bytes) + EXCESS_BYTES)
    return false;
  return is_scattered(excess, live / SWING) && is_scattered(excess, used_bytes(heap));
}

static void wait_once(uint64_t live, uint32_t more) {
  store_relaxed(&seen_live_bytes, live);
  store_relaxed(&turns_left, turns_to_wait(live));
  store_relaxed(&waits_left, more);
  store_relaxed(&stage, WAITING);
}

static bool has_stopped(uint64_t live, uint64_t before) {
  uint64_t moved = live > before ? live - before : before - live;
  return moved < turns_to_wait(before) * LEAST_FREE_BYTES;
}

/* The program takes again what it freed: wait for another end. */
static bool has_grown_again(void) {
  return live_bytes() > load_relaxed(&seen_live_bytes) + EXCESS_BYTES;
}

static void wait(const struct heap *heap) {
  uint64_t turns = load_relaxed(&turns_left) - 1;
  store_relaxed(&turns_left, turns);
  if (has_grown_again()) store_relaxed(&stage, NOTHING);
  if (turns || load_relaxed(&stage) == NOTHING) return;
  uint64_t live = used_bytes(heap);
  uint32_t waits = load_relaxed(&waits_left);
  if (!waits || !is_scattered(excess_over(live), live / SWING))
    stop(excess_over(live));
  else if (has_stopped(live, load_relaxed(&seen_live_bytes)))
    begin(live, true);
  else
    wait_once(live, waits - 1);
}

/* ---- step by step ------------------------------------------------------------------------------------------ */
/* The system may refuse pages (of a program that has locked its memory, say): this many steps in a row without a result end the work. */
enum { FRUITLESS_MAX = 16 };
static ATOMIC(uint32_t) fruitless_steps;

/* One step; counts as cut when more is left and the last steps had a result. */
static struct purge give(struct heap *heap, enum reclaim_reason reason) {
  uint64_t committed = load_relaxed(&totals.committed_bytes);
  struct purge purge = reclaim(heap, reason);
  regret_note_given(&purge, true);
  /* Ranges are counted before the system is asked; pages of slabs in use stay in committed_bytes. */
  bool has_given = reason == RECLAIM_EXCESS_PAGES
                       ? purge.purged_bytes != 0
                       : load_relaxed(&totals.committed_bytes) < committed;
  uint32_t fruitless = purge.is_cut && !has_given ? load_relaxed(&fruitless_steps) + 1 : 0;
  store_relaxed(&fruitless_steps, fruitless % FRUITLESS_MAX);
  purge.is_cut &= fruitless < FRUITLESS_MAX;
  return purge;
}

static void begin_scan(const struct owner *owner) {
  uint64_t slabs = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    slabs += load_relaxed(&owner->bins[class].slab_count);
  store_relaxed(&turns_left, slabs / PURGE_SLABS_A_STEP + 1);
  store_relaxed(&stage, SCANNING);
}

static void give_slabs(struct heap *heap) {
  if (give(heap, RECLAIM_EXCESS).is_cut) return;
  uint64_t live = live_bytes(), excess = excess_over(live), used = used_bytes(heap);
  bool is_time = load_relaxed(&is_at_rest) || used < load_relaxed(&scan_below_bytes);
  if (!is_time || !is_scattered(excess, live)) {
    stop(excess);
  } else {
    store_relaxed(&scan_below_bytes, used / SCAN_DIVISOR);
    begin_scan(&heap->owner);
  }
}

static bool is_worth_its_calls(const struct heap *heap, const struct purge *purge) {
  return purge->purged_bytes >= purge->calls * SCAN_BYTES_A_CALL || load_relaxed(&is_at_rest) ||
         used_bytes(heap) < LAST_BYTES;
}

static void scan(struct heap *heap) {
  struct purge purge = give(heap, RECLAIM_EXCESS_PAGES);
  bool goes_on = is_worth_its_calls(heap, &purge);
  if (goes_on && purge.is_cut) return;
  uint64_t turns = load_relaxed(&turns_left) - 1;
  store_relaxed(&turns_left, turns);
  if (!turns || !goes_on) stop(excess_over(live_bytes()));
}

/* ---- memory that waits by age -------------------------------------------------------------------------------- */

/* A program whose requests all hit magazines takes no slow path, where rounds begin. While more than LEAST_BYTES and half of the live
 * bytes is free, its next free takes the slow path: 10 times in a millisecond on average, which costs 4 us at most, and in a burst as
 * often as in the 400 ms before. */
enum { TURNS_A_MS = 10, TURNS_SAVED_MAX = 4096 };
#define LEAST_BYTES ((uint64_t)4 << 20)

static bool has_turn(void) {
  static ATOMIC(uint64_t) turns_spent;
  uint64_t earned = os_now_coarse_ms() * TURNS_A_MS, spent = load_relaxed(&turns_spent);
  if (spent + TURNS_SAVED_MAX < earned) spent = earned - TURNS_SAVED_MAX;
  if (spent >= earned) return false;
  store_relaxed(&turns_spent, spent + 1);
  return true;
}

RESIDENT static void divert_while_it_ages(struct heap *heap) {
  uint64_t live = live_bytes();
  if (LIKELY(excess_over(live) <= LEAST_BYTES + live / EXCESS_DIVISOR)) return;
  if (has_turn()) heap_divert(heap, HEAP_POKE);
}

NOINLINE static bool go_on(struct heap *heap) {
  uint32_t before = load_relaxed(&stage);
  switch (before) {
    case WAITING: wait(heap); break;
    case GIVING: give_slabs(heap); break;
    case SCANNING: scan(heap); break;
    default: break;
  }
  if (load_relaxed(&stage) != NOTHING) {
    purge_want(); /* a round may have found nothing left */
    heap_divert(heap, HEAP_POKE);
  }
  return before == GIVING || before == SCANNING;
}

static void note_change(uint64_t excess, uint64_t live) {
  if (excess < load_relaxed(&stuck_bytes)) store_relaxed(&stuck_bytes, excess);
  if (live <= load_relaxed(&given_live_bytes) + EXCESS_BYTES) return;
  store_relaxed(&given_live_bytes, 0);
  store_relaxed(&scan_below_bytes, UINT64_MAX);
}

RESIDENT static void begin_if_too_much(const struct heap *heap) {
  uint64_t live = live_bytes(), excess = excess_over(live);
  note_change(excess, live);
  bool is_much = is_too_much(excess, live);
  if (LIKELY(!is_much && !may_end(heap, excess, live)) || is_in_vain()) return;
  if (is_much)
    begin(live, false);
  else
    wait_once(used_bytes(heap), WAITS_MAX);
}

RESIDENT bool excess_give_when_due(struct heap *heap) {
  if (os_is_multi_threaded() || load_relaxed(&purge_has_helper)) return false;
  if (reclaim_decay_ms() > DECAY_MAX_MS) return false;
  if (LIKELY(load_relaxed(&stage) == NOTHING)) begin_if_too_much(heap);
  if (UNLIKELY(load_relaxed(&stage) != NOTHING)) return go_on(heap);
  divert_while_it_ages(heap);
  return false;
}

/* All remaining blocks may fit into the magazines: then no slow path comes any more, and each of the last blocks keeps a page. Where
 * that could be more than EXCESS_BYTES the magazines are shrunk until slow paths come. With more than ROOMS times their room in blocks,
 * a fall is seen even with all of them full. */
enum { ROOMS = 2 };

static void shrink_magazines(struct heap *heap) {
  if (live_bytes() > (uint64_t)heap->capacity_bytes * ROOMS) return;
  heap_enter(heap);
  capacity_shrink_all(heap, (unsigned)excess_pages());
  heap_leave(heap);
}

RESIDENT void excess_flush_when_due(struct heap *heap) {
  if (LIKELY(load_relaxed(&stage) != BEGUN)) return;
  reclaim(heap, RECLAIM_EXCESS_OWN);
  shrink_magazines(heap);
  store_relaxed(&stage, GIVING);
}
