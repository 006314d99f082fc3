#include "pool/slab_pool.h"

#include "base/tagged_stack.h"
#include "map/commit.h"

/* ---- EMPTY slabs: still what they were, so the next one of their class needs no set-up ------------------------ */

/* What one class keeps, youngest on top; more go back to all classes. */
#define EMPTY_KEEP_BYTES ((size_t)256 << 10)

/* Two to a cache line: all of them are read at the start of every process, and share a page with more. */
enum { EMPTY_STACK_ALIGNMENT = CACHE_LINE_BYTES / 2 };
static struct empty_stack {
  _Alignas(EMPTY_STACK_ALIGNMENT) struct tagged_stack stack;
  ATOMIC(uint32_t) slab_count; /* about as many as are in it: raised before, lowered after */
} stacks[SLAB_CLASS_COUNT];

/* Items are granules. */
static ATOMIC(uint32_t) *empty_link(uint32_t granule) {
  return &superslab_of_granule(granule)->next_empty[granule % GRANULES_PER_CHUNK];
}

static struct slot_run run_at(uint32_t granule) {
  return (struct slot_run){superslab_of_granule(granule), granule % GRANULES_PER_CHUNK, true};
}

RESIDENT static bool empty_slabs_push(struct slot_run run, unsigned class,
                                      struct counters *counters) {
  struct empty_stack *empty = &stacks[class];
  if (load_relaxed(&empty->slab_count) >=
      EMPTY_KEEP_BYTES / (slots_of_class(class) * GRANULE_BYTES))
    return false;
  fetch_add_relaxed(&empty->slab_count, 1);
  uint32_t granule = (uint32_t)(run.superslab->chunk * GRANULES_PER_CHUNK + run.first);
  count_add(counters, COUNT_cas_retries, tagged_stack_push(&empty->stack, empty_link, granule));
  return true;
}

RESIDENT static struct slot_run empty_slabs_pop(unsigned class) {
  uint32_t granule = tagged_stack_pop(&stacks[class].stack, empty_link);
  if (granule == NO_ITEM) return (struct slot_run){0};
  fetch_sub_relaxed(&stacks[class].slab_count, 1);
  return run_at(granule);
}

/* It ages on where it was. */
static bool open_one_of_class(unsigned class) {
  struct slot_run run = empty_slabs_pop(class);
  if (run.superslab) slots_return(run.superslab, run_mask(run.first, slots_of_class(class)), 0);
  return run.superslab;
}

RESIDENT static bool empty_slabs_open_one(unsigned slot_count) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    if (!load_relaxed(&stacks[class].slab_count) || slots_of_class(class) < slot_count) continue;
    if (open_one_of_class(class)) return true;
  }
  return false;
}

LONG_LIVED void empty_slabs_open_all(void) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    for (uint32_t slabs = load_relaxed(&stacks[class].slab_count); slabs; slabs--)
      open_one_of_class(class);
}

uint64_t empty_slabs_bytes(void) {
  uint64_t bytes = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    bytes += load_relaxed(&stacks[class].slab_count) * slots_of_class(class) * GRANULE_BYTES;
  return bytes;
}

/* ---- acquire ----------------------------------------------------------------------------------------- */

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

/* SuperSlabs in others' addresses that one call may meet: then it makes a new one, and the next call goes on. */
enum { OCCUPIED_TRIES = 16 };

static void retry_set_aside(void) {
  for (uint32_t chunk = superslabs_set_aside(); chunk != NO_ITEM;) {
    struct superslab *superslab = superslab_of_chunk(chunk);
    chunk = load_relaxed(&superslab->next_occupied);
    slots_return(superslab, usable_slots(), 0);
  }
}

/* One without pages.  NULL when there is none, or, with *is_refused, when the system does not map it. */
RESIDENT static struct superslab *take_clean(bool *is_refused) {
  retry_set_aside();
  for (unsigned tries = 0; tries < OCCUPIED_TRIES; tries++) {
    struct superslab *superslab = slots_take_whole(KIND_CLEAN);
    enum os_map_result result = superslab ? superslab_use_again(superslab) : OS_MAPPED;
    if (result == OS_MAPPED) return superslab;
    if (result == OS_OCCUPIED) continue;
    slots_return(superslab, usable_slots(), 0);
    *is_refused = true;
    break;
  }
  return NULL;
}

/* A SuperSlab that is wholly the caller's, or NULL. */
RESIDENT static struct superslab *take_from_system(struct counters *counters) {
  bool is_refused = false;
  struct superslab *superslab = take_clean(&is_refused);
  if (superslab) {
    count(counters, COUNT_acquire_lru);
    return superslab;
  }
  if (!is_refused) superslab = superslab_make();
  if (superslab) count(counters, COUNT_acquire_os);
  return superslab;
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
  if (superslab)
    count(counters, COUNT_acquire_lru);
  else if (reach & POOL_SYSTEM)
    superslab = take_from_system(counters);
  return superslab ? slots_divide(superslab, slot_count, taken_bytes) : run;
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
  return run;
}

/* ---- release ------------------------------------------------------------------------------------------- */

RESIDENT void release_slots(struct slot_run run, unsigned class, uint32_t age_ms,
                            struct counters *counters) {
  count(counters, COUNT_released_slabs);
  uint32_t mask = run_mask(run.first, slots_of_class(class));
  uint32_t freed_ms = (uint32_t)os_now_coarse_ms() - age_ms;
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    store_relaxed(&run.superslab->freed_ms[lowest_bit(rest)],
                  freed_ms); /* ordered by what follows */
  if (!empty_slabs_push(run, class, counters)) slots_return(run.superslab, mask, 0);
  purge_want(); /* last: a round that begins from here on finds the slots */
}
