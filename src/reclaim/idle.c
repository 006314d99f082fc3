#include "reclaim/idle.h"

#include "cache/capacity.h"
#include "cache/divert.h"
#include "config/options.h"
#include "named/named_heap.h"
#include "os/os.h"
#include "purge/purge_credit.h"
#include "ranges/arena.h"
#include "ranges/range_magazine.h"

/* Bytes that may be free beside the budget without a look at the clock, or are left when nearly all
 * is freed. A step gives back as much. */
#define LITTLE_BYTES ((uint64_t)4 << 20)
/* The part of the live bytes that may be free: a swing of the working set is of that order
 * (docs/decisions/0005). */
enum { LIVE_DIVISOR = 2 };
/* A decay time above this, ten times the usual one, says that memory is to be kept. */
enum { KEEP_MS = 10000 };
/* Stuck bytes become free as the blocks between are freed: they are tried again when this part of
 * those has gone. With a half 130 MiB of 16 KiB pages stay where now 70 do (test_idle.c). */
enum { STUCK_DIVISOR = 4 };

/* Relaxed: an error costs one round more, or one later. */
static ATOMIC(uint64_t) stuck_bytes; /* that a step could not give: in slabs in use, or locked */
static ATOMIC(uint64_t) stuck_live_bytes; /* the live bytes then */
enum stage { NOTHING, BEGUN /* the next free flushes its caches before */, GIVING };
static ATOMIC(uint32_t) stage;

/* Whether no tick is certain to come. */
RESIDENT static bool may_sleep(void) {
  return !os_is_multi_threaded() && !load_relaxed(&purge_has_helper) &&
         limits_decay_ms(options.decay_ms) <= KEEP_MS;
}

/* ---- how much -------------------------------------------------------------------------------- */

struct idle {
  uint64_t live, free; /* bytes */
  uint64_t blocks;     /* live ones, at least */
};

/* A program that has so few blocks left is likely to free them, too, and each of these frees does a
 * step: together they can give back what is free by then. */
static bool is_nearly_all(const struct idle *idle) {
  return idle->blocks < idle->free / LITTLE_BYTES;
}

/* How many times the bounds of a step are needed to give back ranges in equal parts at each of
 * these frees. To free the last of a few Big blocks takes as long as to unmap them all would. */
static uint64_t steps_a_free(const struct idle *idle) {
  uint64_t steps = arenas_bytes_of(RANGE_DIRTY) / LITTLE_BYTES / (idle->blocks + 1);
  return steps ? steps : 1;
}

/* The number of Big blocks is known. The bytes may be negative for a moment: caches hold what was
 * counted as freed. */
static struct idle idle_of(int64_t slab_bytes, int64_t large_bytes, uint64_t held) {
  uint64_t in_slabs = slab_bytes > 0 ? (uint64_t)slab_bytes : 0;
  uint64_t in_large = large_bytes > 0 ? (uint64_t)large_bytes : 0;
  uint64_t live = in_slabs + in_large + load_relaxed(&totals.big_live_bytes);
  uint64_t blocks =
      in_slabs / MID_MAX_BYTES + in_large / LARGE_MAX_BYTES + load_relaxed(&totals.big_live_blocks);
  return (struct idle){live, held > live ? held - live : 0, blocks};
}

/* In the magazines of all heaps. */
static int64_t cached_bytes(void) {
  int64_t bytes = 0;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    bytes += capacity_cached_bytes(heap_of_owner(owner));
  return bytes;
}

/* Where threads run ranges alone, without a walk over all heaps. Else all heaps count, also of
 * threads that ended. */
RESIDENT static struct idle measure(void) {
  int64_t slabs = 0, cacheable = 0;
  int64_t large = (int64_t)load_relaxed(&totals.large_live_bytes);
  if (!may_sleep()) {
    struct idle idle = idle_of(0, large, 0);
    idle.free = arenas_bytes_of(RANGE_DIRTY);
    return idle;
  }
  uint64_t held = load_relaxed(&totals.committed_bytes) - load_relaxed(&totals.metadata_bytes);
  if (held <= LITTLE_BYTES) return (struct idle){0, held, 0};
  unsigned left = IDLE_OWNERS_MAX + 1;
  struct owner *owner = owners_first();
  for (; owner && left; owner = owner->next_of_all, left--) {
    slabs += load_relaxed(&owner->bytes_out);
    cacheable += heap_of_owner(owner)->capacity_bytes;
  }
  const struct hak_heap *named;
  for (uint32_t number = 0; left && (named = named_next(&number)); left--)
    slabs += load_relaxed(&named->owner.bytes_out);
  if (!left) return (struct idle){UINT64_MAX, 0, UINT64_MAX}; /* unknown: all counts as live */
  large -= (int64_t)range_magazines_bytes();
  /* Free blocks in magazines count as live; only where they may hide that nearly all is free is a
   * walk worth its price. */
  struct idle least = idle_of(slabs - cacheable, large, held);
  if (is_nearly_all(&least)) slabs -= cached_bytes();
  return idle_of(slabs, large, held);
}

/* Bytes that may be free beside the live ones: `most`, within the budget, and half of those. */
RESIDENT static uint64_t room_of(uint64_t most, uint64_t live) {
  uint64_t budget = limits_budget(options.big_cache_bytes);
  return budget ? limits_at_most((most < budget ? most : budget) + live / LIVE_DIVISOR) : 0;
}

/* A program that has freed more than the budget, or nearly all, is likely to free everything; the
 * live bytes then, 0: it has grown since. */
static ATOMIC(uint64_t) falling_from;

static void note_fall(const struct idle *idle, uint64_t most) {
  uint64_t from = load_relaxed(&falling_from);
  if (from ? idle->live > from + IDLE_MUCH_BYTES : (idle->free > most || is_nearly_all(idle)))
    store_relaxed(&falling_from, from ? 0 : idle->live + 1);
}

/* Bytes that may be free and were freed just now: the budget, less the earned ones where no other
 * step may come. */
static uint64_t young_room(const struct idle *idle, int64_t credit) {
  uint64_t room = room_of(0, idle->live), most = room_of(UINT64_MAX, idle->live);
  if (!may_sleep() || idle->free <= room) return most;
  note_fall(idle, most);
  if (load_relaxed(&falling_from)) return room;
  bool may_break = !huge_is_default(); /* huge pages */
  uint64_t early = credit > 0 && may_break ? (uint64_t)credit : 0;
  uint64_t young = idle->free < most ? idle->free : most;
  return early < young - room ? young - early : room;
}

/* Near a cgroup's limit nothing stays longer. */
RESIDENT static uint64_t wanted(int64_t credit) {
  return credit < 0 && !load_relaxed(&limits.decay_cut) ? (uint64_t)-credit : 0;
}

/* Where so small a part is left all free pages of slabs in use go, else those that pay for a
 * call. */
static size_t early_run_bytes(const struct idle *idle, int64_t credit) {
  if (idle->live < idle->free / IDLE_SMALL_DIVISOR) return 0;
  return credit > 0 ? PURGE_CALL_BYTES : SIZE_MAX;
}

/* ---- the rounds ------------------------------------------------------------------------------ */

void idle_measure(struct purge *purge) {
  struct idle idle = measure();
  int64_t credit = purge_credit();
  purge->idle_bytes = idle.free;
  purge->room_bytes = young_room(&idle, credit);
  purge->wanted_bytes = wanted(credit);
  purge->early_run_bytes = early_run_bytes(&idle, credit);
  if (!may_sleep()) {
    purge->early_run_bytes = SIZE_MAX;
  } else if (purge->end_ns) {
    purge->end_ns += (steps_a_free(&idle) - 1) * PURGE_STEP_NS;
    purge->calls_left *= steps_a_free(&idle);
  }
}

static uint64_t stuck_now(const struct idle *idle) {
  uint64_t stuck = load_relaxed(&stuck_bytes);
  if (idle->free < stuck) store_relaxed(&stuck_bytes, stuck = idle->free);
  uint64_t live = load_relaxed(&stuck_live_bytes);
  return idle->live < live - live / STUCK_DIVISOR ? 0 : stuck;
}

static bool is_too_much(const struct idle *idle) {
  uint64_t movable = idle->free - stuck_now(idle);
  if (movable <= room_of(0, idle->live) + (may_sleep() ? LITTLE_BYTES : 0)) return false;
  int64_t credit = purge_credit();
  uint64_t room = young_room(idle, credit) + wanted(credit), most = room_of(UINT64_MAX, idle->live);
  uint64_t least = load_relaxed(&falling_from) ? LITTLE_BYTES : IDLE_MUCH_BYTES;
  return movable > most + wanted(credit) || movable > room + least;
}

RESIDENT bool idle_is_given(void) { return load_relaxed(&stage) == GIVING; }

static void note_stuck(uint64_t bytes, uint64_t live) {
  store_relaxed(&stuck_bytes, bytes);
  store_relaxed(&stuck_live_bytes, live);
}

void idle_note_step(const struct purge *purge) {
  if (!purge->now_ms) return; /* another thread was at it */
  uint64_t target = purge->room_bytes + purge->wanted_bytes;
  uint64_t left = purge->idle_bytes > target ? purge->idle_bytes - target : 0;
  bool goes_on = left && purge->purged_bytes && (purge->is_cut || !purge->slabs_left);
  if (!goes_on) note_stuck(left, measure().live);
  store_relaxed(&stage, goes_on ? GIVING : NOTHING);
}

void idle_note_round(const struct purge *purge) {
  if (purge->work_remains || purge->is_cut || !may_sleep()) return;
  struct idle idle = measure();
  note_stuck(idle.free, idle.live);
}

RESIDENT bool idle_begins(void) {
  if (LIKELY(load_relaxed(&stage) != BEGUN)) return false;
  store_relaxed(&stage, GIVING);
  return true;
}

/* All remaining blocks may fit into the magazines: then no slow path comes any more, and each of
 * the last blocks keeps a page. So magazines that could keep more pages than the room has are
 * shrunk: with room for less than may be free, a fall is seen with all full. */
void idle_shrink_magazines(struct heap *heap) {
  if (measure().live / LIVE_DIVISOR <= (uint64_t)heap->capacity_bytes)
    capacity_shrink_all(heap, (unsigned)(IDLE_MUCH_BYTES / 2 / os_page_bytes()));
}

/* ---- memory that waits ----------------------------------------------------------------------- */

/* Each look costs a free 20 to 100 ns. If other slow paths look too, at most 10 looks a millisecond
 * are made, within a decay time; else, and where nearly all has been freed, the thread keeps
 * looking until the clock ticks. */
enum { PASSES_A_MS = 10 };
static ATOMIC(uint64_t) looked_ms, passes_left, slow_paths_seen;

bool idle_passes(uint64_t now_ms) {
  uint64_t left = load_relaxed(&passes_left);
  if (!left || now_ms != load_relaxed(&looked_ms)) return false;
  store_relaxed(&passes_left, left - 1);
  return true;
}

static uint64_t passes_after(const struct heap *heap, const struct idle *idle, uint64_t passed_ms) {
  uint64_t slow_paths = load_relaxed(&heap->owner.slow_paths);
  bool takes_others = slow_paths != load_relaxed(&slow_paths_seen);
  uint64_t left = load_relaxed(&passes_left) + passed_ms * PASSES_A_MS;
  uint64_t most = limits_decay_ms(options.decay_ms) * PASSES_A_MS;
  store_relaxed(&slow_paths_seen, slow_paths);
  if (!takes_others || is_nearly_all(idle)) return UINT32_MAX;
  return left < most ? left : most;
}

static void wait(struct heap *heap, const struct idle *idle, uint64_t now_ms) {
  uint64_t before_ms = load_relaxed(&looked_ms);
  uint64_t passed_ms = before_ms ? now_ms - before_ms : os_processor_ms();
  if (passed_ms || is_nearly_all(idle))
    store_relaxed(&passes_left, passes_after(heap, idle, passed_ms));
  store_relaxed(&looked_ms, now_ms);
  if (load_relaxed(&passes_left)) heap_divert(heap, HEAP_WAIT);
}

/* Then no flush is needed, and this call may be the last one. */
static bool is_in_ranges(const struct idle *idle) {
  return arenas_bytes_of(RANGE_DIRTY) >= idle->free / 2;
}

RESIDENT void idle_look(struct heap *heap, uint64_t now_ms) {
  struct idle idle = measure();
  uint64_t little = room_of(LITTLE_BYTES, idle.live);
  if (LIKELY(idle.free <= little)) return;
  bool may = may_sleep();
  if (load_relaxed(&stage) == NOTHING && is_too_much(&idle))
    store_relaxed(&stage, may && !is_in_ranges(&idle) ? BEGUN : GIVING);
  if (load_relaxed(&stage) != NOTHING) {
    purge_want(); /* a round may have found nothing left */
    if (may) heap_divert(heap, HEAP_POKE);
  } else if (may && idle.free - stuck_now(&idle) > little) {
    wait(heap, &idle, now_ms);
  }
}
