#include "cache/parked.h"

#include "cache/capacity.h"
#include "map/metadata.h"
#include "os/lock.h"
#include "slab/adopt.h"

static ATOMIC(uint32_t) heap_numbers; /* given so far; relaxed: each is given once */
/* Tags have room for twice as many, of which threads that draw one at once may take some. */
enum { HEAPS_MOST = MAP_HEAP_NUMBERS / 2 };

RESIDENT struct heap *heap_make(void) {
  if (UNLIKELY(load_relaxed(&heap_numbers) > HEAPS_MOST)) return NULL;
  struct heap *heap = metadata_allocate(sizeof *heap);
  if (!heap) return NULL;
  uint32_t number = fetch_add_relaxed(&heap_numbers, 1) + 1;
  heap->owner.number = number;
  heap->owner.tag = number << MAP_TAG_SHIFT | window.hardened_bit;
  heap_set_tag(heap); /* it has no thread yet */
  capacity_init(heap);
  store_relaxed(&heap->owner.state, OWNER_RUNNING);
  /* Not by count(), which reads first: then the page of the counters costs two faults. */
  store_relaxed(&heap->owner.counters.value[COUNT_heaps_created], 1);
  owner_register(&heap->owner);
  return heap;
}

static struct lock heaps_lock = {.rank = LOCK_RANK_HEAPS};
static struct heap *parked_heaps; /* under the lock */
static uint32_t forks; /* between the first process and this one; written while it has one thread */

static void push_parked(struct heap *heap) {
  lock_take(&heaps_lock, &stray_counters);
  heap->next_parked = parked_heaps;
  parked_heaps = heap;
  lock_give(&heaps_lock);
}

static struct heap *pop_parked(void) {
  lock_take(&heaps_lock, &stray_counters);
  struct heap *heap = parked_heaps;
  if (heap) parked_heaps = heap->next_parked;
  lock_give(&heaps_lock);
  return heap;
}

RESIDENT struct heap *parked_take(void) {
  struct heap *heap = pop_parked();
  while (heap && load_relaxed(&heap->owner.state) == OWNER_LOST) heap = pop_parked();
  if (!heap) return NULL;
  latch_take(&heap->owner);              /* another thread may be adopting from it */
  store_relaxed(&heap->taken_in, forks); /* before the state: pairs with park_if_lost */
  store_seq(&heap->owner.state, OWNER_RUNNING);
  latch_give(&heap->owner);
  heap_set_tag(heap); /* a ticker may have been late */
  count(&heap->owner.counters, COUNT_heaps_recycled);
  return heap;
}

void parked_add(struct heap *heap) {
  latch_take(&heap->owner);
  count(&heap->owner.counters, COUNT_heaps_parked);
  owner_park(&heap->owner);
  latch_give(&heap->owner);
  push_parked(heap);
}

bool parked_was_taken_here(const struct heap *heap) {
  return load_relaxed(&heap->taken_in) == forks;
}

void parked_after_fork(void) {
  forks++;
  if (!lock_reset_in_child(&heaps_lock)) return;
  parked_heaps = NULL;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    if (load_relaxed(&owner->state) == OWNER_PARKED) push_parked(heap_of_owner(owner));
}
