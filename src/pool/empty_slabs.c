#include "pool/empty_slabs.h"

#include "base/tagged_stack.h"

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

RESIDENT bool empty_slabs_push(struct slot_run run, unsigned class, struct counters *counters) {
  struct empty_stack *empty = &stacks[class];
  if (load_relaxed(&empty->slab_count) >=
      EMPTY_KEEP_BYTES / (slots_of_class(class) * GRANULE_BYTES))
    return false;
  fetch_add_relaxed(&empty->slab_count, 1);
  uint32_t granule = (uint32_t)(run.superslab->chunk * GRANULES_PER_CHUNK + run.first);
  count_add(counters, COUNT_cas_retries, tagged_stack_push(&empty->stack, empty_link, granule));
  return true;
}

RESIDENT struct slot_run empty_slabs_pop(unsigned class) {
  uint32_t granule = tagged_stack_pop(&stacks[class].stack, empty_link);
  if (granule == NO_ITEM) return (struct slot_run){0};
  fetch_sub_relaxed(&stacks[class].slab_count, 1);
  return run_at(granule);
}

/* They age on where they were. */
static void open_slab(struct slot_run run, unsigned class) {
  slots_return(run.superslab, run_mask(run.first, slots_of_class(class)), 0);
}

RESIDENT bool empty_slabs_open_one(unsigned slot_count) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    if (!load_relaxed(&stacks[class].slab_count) || slots_of_class(class) < slot_count) continue;
    struct slot_run run = empty_slabs_pop(class);
    if (!run.superslab) continue;
    open_slab(run, class);
    return true;
  }
  return false;
}

LONG_LIVED static void age_class(struct purge *purge, unsigned class) {
  struct empty_stack *empty = &stacks[class];
  /* Oldest first, so that the youngest ends on top again. */
  uint32_t granule = tagged_chain_reverse(tagged_stack_pop_all(&empty->stack), empty_link);
  while (granule != NO_ITEM) {
    struct slot_run run = run_at(granule);
    uint32_t next = load_relaxed(empty_link(granule));
    if (purge_is_due(purge, load_relaxed(&run.superslab->freed_ms[run.first]))) {
      fetch_sub_relaxed(&empty->slab_count, 1);
      open_slab(run, class);
    } else {
      tagged_stack_push(&empty->stack, empty_link, granule);
    }
    granule = next;
  }
}

LONG_LIVED void empty_slabs_age(struct purge *purge) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) age_class(purge, class);
}

uint64_t empty_slabs_bytes(void) {
  uint64_t bytes = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    bytes += load_relaxed(&stacks[class].slab_count) * slots_of_class(class) * GRANULE_BYTES;
  return bytes;
}
