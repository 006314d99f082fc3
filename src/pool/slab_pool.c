#include "pool/slab_pool.h"

#include "map/commit.h"

/* ---- EMPTY slabs: still what they were, so the next one of their class needs no set-up ------- */

/* The most EMPTY slots that one class keeps; more go back to all classes. */
enum { EMPTY_SLOTS_MAX = 4 };

static struct empty_slabs {
  ATOMIC(uint32_t) places[EMPTY_SLOTS_MAX]; /* granule + 1; 0: none */
} empty_slabs[SLAB_CLASS_COUNT];
static ATOMIC(uint64_t) empty_classes; /* bit per class: it may have some; a hint */

RESIDENT static bool empty_slabs_push(struct slot_run run, unsigned class) {
  uint32_t number = (uint32_t)(run.superslab->chunk * GRANULES_PER_CHUNK + run.first) + 1;
  unsigned slot_count = slots_of_class(class);
  if (load_relaxed(&empty_slabs[class].places[EMPTY_SLOTS_MAX - slot_count]))
    return false; /* the last is full */
  for (unsigned index = 0; index < EMPTY_SLOTS_MAX; index += slot_count) {
    ATOMIC(uint32_t) *place = &empty_slabs[class].places[index];
    uint32_t none = 0;
    /* release: the slab's content before it can be had; pairs with empty_slabs_pop. */
    if (load_relaxed(place) || !cas_strong_acq_rel(place, &none, number)) continue;
    /* release: a fitted class's shape before its bit; pairs with empty_slabs_open_one. */
    fetch_or_release(&empty_classes, UINT64_C(1) << class);
    return true;
  }
  return false;
}

RESIDENT static struct slot_run empty_slabs_pop(unsigned class) {
  for (unsigned index = EMPTY_SLOTS_MAX; index-- > 0;) {
    ATOMIC(uint32_t) *place = &empty_slabs[class].places[index];
    uint32_t number = load_relaxed(place), granule = number - 1;
    /* acquire: the slab's content; pairs with empty_slabs_push. */
    if (number && cas_strong_acq_rel(place, &number, 0))
      return (struct slot_run){superslab_of_granule(granule), granule % GRANULES_PER_CHUNK, true};
  }
  return (struct slot_run){0};
}

/* Makes one slab of the class UNUSED; its age is unchanged. */
static bool open_one_of_class(unsigned class) {
  struct slot_run run = empty_slabs_pop(class);
  if (run.superslab) slots_return(run.superslab, run_mask(run.first, slots_of_class(class)), 0);
  return run.superslab;
}

RESIDENT static bool empty_slabs_open_one(unsigned slot_count) {
  /* acquire: the shapes of classes; pairs with empty_slabs_push. */
  for (uint64_t classes = load_acquire(&empty_classes); classes; classes &= classes - 1) {
    unsigned class = lowest_bit(classes);
    if (slots_of_class(class) < slot_count) continue;
    if (open_one_of_class(class)) return true;
    fetch_and_relaxed(&empty_classes, ~(UINT64_C(1) << class));
  }
  return false;
}

void empty_slabs_open_all(void) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    for (unsigned slabs = EMPTY_SLOTS_MAX; slabs; slabs--) open_one_of_class(class);
}

uint64_t empty_slabs_bytes(void) {
  uint64_t bytes = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    for (unsigned index = 0; index < EMPTY_SLOTS_MAX; index++)
      if (load_relaxed(&empty_slabs[class].places[index]))
        bytes += slots_of_class(class) * GRANULE_BYTES;
  return bytes;
}

/* ---- acquire --------------------------------------------------------------------------------- */

RESIDENT static struct slot_run acquire_touched(unsigned class, struct counters *counters) {
  struct slot_run run = empty_slabs_pop(class);
  if (run.superslab) {
    count(counters, COUNT_acquire_empty);
    return run;
  }
  unsigned slot_count = slots_of_class(class);
  run = slots_take_run(slot_count, 0, counters);
  if (!run.superslab && empty_slabs_open_one(slot_count))
    run = slots_take_run(slot_count, 0, counters);
  if (run.superslab) count(counters, COUNT_acquire_unused);
  return run;
}

/* SuperSlabs with foreign mappings in their addresses that one call may meet: it leaves them, and
 * makes a new one; the next call goes on. */
enum { OCCUPIED_TRIES = 16 };

/* A SuperSlab that is wholly the caller's: one without pages, else a new one; NULL when the system
 * refuses. */
RESIDENT static struct superslab *take_from_system(bool is_ahead, struct counters *counters) {
  for (unsigned tries = 0; tries < OCCUPIED_TRIES; tries++) {
    struct superslab *clean = slots_take_whole(KIND_CLEAN);
    if (!clean) break;
    enum os_map_result result = superslab_use_again(clean, is_ahead);
    if (result == OS_OCCUPIED) continue;
    if (result == OS_MAPPED) {
      count(counters, COUNT_acquire_lru);
      return clean;
    }
    slots_return(clean, usable_slots(), 0);
    return NULL;
  }
  struct superslab *fresh = superslab_make(is_ahead);
  if (fresh) count(counters, COUNT_acquire_os);
  return fresh;
}

/* Slots for which `taken_bytes` have been taken. */
RESIDENT static struct slot_run acquire_untouched(unsigned slot_count, size_t taken_bytes,
                                                  enum pool_reach reach,
                                                  struct counters *counters) {
  struct slot_run run = {0};
  if (reach & POOL_FRESH) run = slots_take_run(slot_count, taken_bytes, counters);
  if (run.superslab) {
    count(counters, COUNT_acquire_unused);
    return run;
  }
  struct superslab *superslab = reach & POOL_FRESH ? slots_take_whole(KIND_KEPT) : NULL;
  if (superslab) {
    count(counters, COUNT_acquire_lru);
    if (superslab->is_ahead) superslab_want_ahead(); /* the next one */
  } else if (reach & POOL_SYSTEM) {
    superslab = take_from_system(false, counters);
  }
  if (superslab) superslab->is_ahead = false;
  return superslab ? slots_divide(superslab, slot_count, taken_bytes) : run;
}

void slab_pool_make_ahead(struct counters *counters) {
  if (LIKELY(!load_relaxed(&superslab_is_wanted))) return;
  store_relaxed(&superslab_is_wanted, false);
  if (load_relaxed(&totals.superslabs_kept)) return;
  struct superslab *superslab = take_from_system(true, counters);
  if (!superslab) return;
  superslab->is_ahead = load_relaxed(&superslab->huge_state) == HUGE_LET_IN;
  slots_return(superslab, usable_slots(), 0);
}

RESIDENT struct slot_run acquire_slots(unsigned class, enum pool_reach reach,
                                       struct counters *counters) {
  struct slot_run run = {0};
  if (reach & POOL_TOUCHED) run = acquire_touched(class, counters);
  unsigned slot_count = slots_of_class(class);
  size_t bytes = slot_count * GRANULE_BYTES;
  if (run.superslab || !(reach & (POOL_FRESH | POOL_SYSTEM)) || !commit_take(bytes)) return run;
  run = acquire_untouched(slot_count, bytes, reach, counters);
  if (!run.superslab) commit_give(bytes);
  if (run.superslab && reach & POOL_POPULATED)
    os_populate((void *)(chunk_address(run.superslab->chunk) + run.first * GRANULE_BYTES), bytes);
  return run;
}

/* ---- release --------------------------------------------------------------------------------- */

void release_slots(struct slot_run run, unsigned class, uint32_t age_ms,
                   struct counters *counters) {
  count(counters, COUNT_released_slabs);
  uint32_t mask = run_mask(run.first, slots_of_class(class));
  uint32_t freed_ms = (uint32_t)os_now_coarse_ms() - age_ms;
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    store_relaxed(&run.superslab->freed_ms[lowest_bit(rest)],
                  freed_ms); /* ordered by the stores below */
  if (!empty_slabs_push(run, class)) slots_return(run.superslab, mask, 0);
  purge_want(); /* last: a round that begins from here on finds the slots */
}
