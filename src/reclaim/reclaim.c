#include "reclaim/reclaim.h"

#include "cache/caches.h"
#include "cache/divert.h"
#include "cache/lost.h"
#include "config/limits.h"
#include "config/options.h"
#include "named/named_heap.h"
#include "os/lock.h"
#include "pool/slab_pool.h"
#include "purge/purge_credit.h"
#include "ranges/range.h"
#include "ranges/range_magazine.h"
#include "reclaim/allowance.h"
#include "slab/adopt.h"
#include "slab/pages.h"
#include "slab/pending.h"

/* ---- the table ------------------------------------------------------------------------------- */

/* The helper looks after this time whether it is still wanted, as a thread of the program may wait
 * for its end. */
#define ROUND_NS UINT64_C(50000000)

/* The bounds of one round. A step takes a thread of the program a millisecond at most:
 * PURGE_STEP_NS is for giving back. */
enum budget { STEP, ROUND, ALL };
struct bounds {
  uint64_t ns; /* 0: none */
  size_t calls, owners, slabs;
};
static const struct bounds budgets[] = {
    [STEP] = {PURGE_STEP_NS, PAGE_CALLS_A_SCAN, ALLOWANCE_OWNERS_MAX, PURGE_SLABS_A_STEP},
    [ROUND] = {ROUND_NS, SIZE_MAX, SIZE_MAX, SIZE_MAX},
    [ALL] = {0, SIZE_MAX, SIZE_MAX, SIZE_MAX},
};

/* A round without bounds waits until no other runs, and begins with the thread's own caches; else
 * it is not run meanwhile. */
static const struct row {
  bool is_by_age; /* else everything free goes */
  enum budget budget;
  bool gives_addresses;
} rows[RECLAIM_REASONS] = {
    [RECLAIM_TICK] = {true, STEP, false},    [RECLAIM_TICK_OF_ALL] = {false, STEP, false},
    [RECLAIM_ROUND] = {true, ROUND, false},  [RECLAIM_ALL] = {false, ALL, false},
    [RECLAIM_PRESSURE] = {false, ALL, true},
};

/* ---- ages ------------------------------------------------------------------------------------ */

RESIDENT uint64_t reclaim_decay_ms(void) { return limits_decay_ms(options.decay_ms); }

RESIDENT uint64_t reclaim_interval_ms(void) {
  uint64_t interval = reclaim_decay_ms() / RECLAIM_ROUNDS_PER_DECAY;
  return interval > PURGE_LEAST_MS ? interval : PURGE_LEAST_MS;
}

/* Purging a page inside a slab costs a system call and, when its blocks are used again, a fault: in
 * a busy program that is soon, so such pages wait even where all other memory is purged at once:
 * longer than a request mostly takes. */
enum { PAGE_DECAY_MIN_MS = 100 };

RESIDENT uint32_t reclaim_page_decay_ms(void) {
  uint64_t decay = reclaim_decay_ms();
  return decay > PAGE_DECAY_MIN_MS ? (uint32_t)decay : PAGE_DECAY_MIN_MS;
}

/* The record of a round, from its row. */
static struct purge begin_record(const struct row *row) {
  const struct bounds *bounds = &budgets[row->budget];
  return (struct purge){.now_ms = (uint32_t)os_now_coarse_ms(),
                        .decay_ms = row->is_by_age ? (uint32_t)reclaim_decay_ms() : 0,
                        .page_decay_ms = row->is_by_age ? reclaim_page_decay_ms() : 0,
                        .end_ns = bounds->ns ? os_now_ns() + bounds->ns : 0,
                        .calls_left = bounds->calls,
                        .slabs_left = bounds->slabs,
                        .give_addresses = row->gives_addresses};
}

/* ---- one round at a time --------------------------------------------------------------------- */

static struct lock round_lock = {.rank = LOCK_RANK_ROUND};

/* seq: between two loads of `purge_state`; pairs with `run_round`, which sets that before the lock
 * is released. */
bool reclaim_is_running(void) { return load_seq(&round_lock.word) != 0; }

/* A guest may end at any instruction, and a round that it leaves never ends. A process with one
 * thread takes no turns, so that a guest leaves none taken. */
bool reclaim_is_ours(void) { return !os_is_multi_threaded() || !os_is_guest(); }

/* In a process with one thread it is not taken. */
#define ASSERT_OUR_TURN() ASSERT(!os_is_multi_threaded() || reclaim_is_running())

/* ---- the cgroup ------------------------------------------------------------------------------ */

/* A process that has stayed small does not pay for reading the files of its cgroup. */
static ATOMIC(uint64_t) next_poll_ms; /* written with the lock; 0: not polled yet */

/* Once in an interval, for any number of steps in a round. */
static void poll_limits(void) {
  uint64_t now_ms = os_now_coarse_ms();
  ASSERT_OUR_TURN();
  if (reclaim_is_small() || now_ms < load_relaxed(&next_poll_ms)) return;
  limits_poll();
  store_relaxed(&next_poll_ms, now_ms + reclaim_interval_ms());
}

RESIDENT void reclaim_poll_limits_once(void) {
  if (LIKELY(load_relaxed(&next_poll_ms))) return;
  if (reclaim_is_small() || !reclaim_is_ours() || !lock_try(&round_lock)) return;
  poll_limits();
  lock_give(&round_lock);
}

/* ---- owners that idle ------------------------------------------------------------------------ */

/* Under the lock. */
static struct owner *next_idle; /* where the next visit begins; NULL: with the first one */
static uint32_t next_named;     /* the named heap's number before the next visit */
static uint64_t answers_until_ms;

/* A thread whose requests all hit its magazines takes no slow path, and blocks that it does not
 * need stay there as well. It is called once it is dormant; a sleeping thread answers when it frees
 * again. */
static void call_if_dormant(const struct heap *self, struct heap *heap, const struct purge *purge,
                            uint64_t now_ms) {
  if (heap == self || load_relaxed(&heap->owner.state) != OWNER_DORMANT) return;
  if (heap_attention(heap) > HEAP_TRACE ||
      load_relaxed(&heap->owner.slow_paths) < load_relaxed(&heap->settled))
    return;
  heap_divert(heap, HEAP_CALL);
  answers_until_ms = now_ms + purge->decay_ms;
}

/* Owners that were in no slow path for a decay time become dormant; wholly free slabs of owners
 * that do not run are released to the pool, and free pages of their other slabs purged; dormant
 * threads are called to flush their caches.
 *
 * Owners that were visited before may have got remote frees since: so a round in parts is followed
 * by one more. */
static void release_idle(const struct heap *self, struct purge *purge, size_t owners_max) {
  uint64_t now_ns = os_now_ns(), now_ms = os_now_coarse_ms();
  struct owner *owner = next_idle ? next_idle : owners_first();
  purge->work_remains |= next_idle != NULL;
  for (; owner && owners_max && purge->slabs_left; owner = owner->next_of_all, owners_max--) {
    if (!owner_sweep(owner, now_ns, purge) && owner != &self->owner) purge->work_remains = true;
    if (!owner_is_hardened(owner))
      call_if_dormant(self, heap_of_owner(owner), purge, now_ms); /* else no magazines */
  }
  next_idle = owner;
  if (owner) purge->work_remains = purge->is_cut = true;
  /* Blocks that they flush are to be purged as well, and the thread that answers may take no other
   * slow path. */
  purge->work_remains |= now_ms < answers_until_ms;
}

/* As release_idle, for heaps that the program made, which have no thread. */
static void release_idle_named(struct purge *purge, size_t heaps_max) {
  uint64_t now_ns = os_now_ns();
  struct hak_heap *heap;
  purge->work_remains |= next_named != 0;
  for (; (heap = named_next(&next_named)) && heaps_max && purge->slabs_left; heaps_max--)
    if (named_serves(heap) && !owner_sweep(&heap->owner, now_ns, purge)) purge->work_remains = true;
  if (heap)
    next_named--; /* its turn comes first */
  else
    next_named = 0;
  if (heap) purge->work_remains = purge->is_cut = true;
  named_purge(purge);
}

void reclaim_after_fork(void) {
  lock_reset_in_child(&round_lock);
  next_idle = NULL;
  next_named = 0;
}

/* ---- the actions ----------------------------------------------------------------------------- */

void reclaim_own_caches(struct heap *heap) {
  if (!heap_is_real(heap)) return;
  heap_enter(heap);
  caches_empty(heap);
  latch_take(&heap->owner);
  owner_release_free_slabs(&heap->owner, SIZE_MAX);
  latch_give(&heap->owner);
  heap_leave(heap);
}

static void purge_own_pages(struct heap *heap, struct purge *purge) {
  heap_enter(heap);
  latch_take(&heap->owner);
  bool is_done = pages_scan(&heap->owner, purge, 0);
  latch_give(&heap->owner);
  heap_leave(heap);
  purge->is_cut |= !is_done;
}

struct purge reclaim_own_pages(struct heap *heap) {
  struct purge purge = begin_record(&rows[RECLAIM_TICK]);
  purge_own_pages(heap, &purge);
  return purge;
}

/* Scans all free memory, so that it is known afterwards whether any remains. */
static void run_round(struct heap *heap, const struct row *row, struct purge *purge) {
  struct counters *counters = heap_counters(heap);
  ASSERT_OUR_TURN();
  count(counters, COUNT_purges);
  if (row->is_by_age) allowance_bound(purge);
  /* Before the scan, so that a thread that frees afterwards sets it again. */
  store_seq(&purge_state, PURGE_NONE);
  /* Its own queues are drained later, a number of slabs at a time (reclaim/due.c). */
  purge->work_remains = heap->has_waiting_pages || load_relaxed(&heap->owner.ready_mask);
  release_idle(heap, purge, budgets[row->budget].owners);
  /* Queued slabs that have changed owner were sent on, perhaps to an owner that was visited
   * already. */
  if (row->budget == ALL) release_idle(heap, purge, SIZE_MAX);
  release_idle_named(purge, budgets[row->budget].owners);
  range_magazines_purge(purge, counters);
  slab_pool_purge(purge);
  range_purge(purge, counters);
  bool is_in_slabs = purge->idle_bytes > purge->room_bytes && purge->early_run_bytes < SIZE_MAX;
  if (is_in_slabs && purge->purged_bytes) purge->is_cut = purge->work_remains = true; /* later */
  if (is_in_slabs && !purge->purged_bytes && heap_is_real(heap)) purge_own_pages(heap, purge);
  if (!purge->work_remains) return;
  store_seq(&purge_state, PURGE_ARMED);
  purge_wake_helper();
}

/* ---- refused requests ------------------------------------------------------------------------ */

/* Rounds of all memory and addresses that have begun; written with the lock, as are the next. */
static ATOMIC(uint64_t) pressure_rounds;
static uint64_t pressure_end_ms;     /* of the last one */
static uint64_t pressure_left_bytes; /* that were free and stayed in the process then */

/* Bytes in pools that a round might give to the system, or that may serve any request. */
static uint64_t pooled_bytes(void) {
  struct slab_pool_sizes slabs;
  struct range_sizes ranges;
  slab_pool_measure(&slabs);
  range_measure(&ranges);
  return slabs.dirty_bytes + ranges.dirty_bytes + ranges.clean_bytes + range_magazines_bytes();
}

/* Thousands of threads may be refused at once. A round is this thread's too if it began after the
 * thread was refused. And if no memory has come to the pools since the last one, another would find
 * a few slabs of idle owners and cached ranges at most: it is put off for a moment. A process with
 * one thread has no such crowd: the blocks that it has freed since are worth a round. */
static bool is_answered(uint64_t rounds_before) {
  if (load_relaxed(&pressure_rounds) != rounds_before) return true;
  return os_is_multi_threaded() && os_now_coarse_ms() - pressure_end_ms < PURGE_LEAST_MS &&
         pooled_bytes() <= pressure_left_bytes;
}

static void note_pressure(void) {
  pressure_end_ms = os_now_coarse_ms();
  pressure_left_bytes = pooled_bytes();
}

struct purge reclaim(struct heap *heap, enum reclaim_reason reason) {
  const struct row *row = &rows[reason];
  if (row->budget == ALL) reclaim_own_caches(heap);
  if (!reclaim_is_ours()) return (struct purge){.work_remains = true};
  bool are_lost_left = lost_park(row->budget == STEP ? LOST_A_STEP : SIZE_MAX);
  if (row->budget == ALL) {
    /* Rounds that have not begun see the caches above. */
    uint64_t rounds = load_relaxed(&pressure_rounds);
    lock_take(&round_lock, heap_counters(heap));
    if (row->gives_addresses && is_answered(rounds)) {
      lock_give(&round_lock);
      return (struct purge){0};
    }
    if (row->gives_addresses) store_relaxed(&pressure_rounds, rounds + 1);
  } else if (!lock_try(&round_lock)) {
    return (struct purge){.work_remains = true};
  }
  poll_limits();
  struct purge purge = begin_record(row);
  run_round(heap, row, &purge);
  if (row->gives_addresses) note_pressure();
  lock_give(&round_lock);
  if (row->budget == STEP)
    purge_credit_spend(purge.purged_bytes + purge.calls * PURGE_CALL_BYTES +
                       (PURGE_SLABS_A_STEP - purge.slabs_left) * PURGE_SLAB_BYTES);
  purge.is_cut |= are_lost_left;
  return purge;
}
