#include "cache/new_heap.h"

#include "cache/capacity.h"
#include "map/metadata.h"

/* The first heap's record: made, with its counters, before the pool's, so that all begin in few pages. */
static ATOMIC(struct heap *) first_record;

static struct heap *take_record(void) {
  struct heap *record = exchange_acquire(&first_record, NULL);
  return record ? record : metadata_allocate(sizeof *record);
}

RESIDENT bool new_heap_init(void) {
  if (!load_relaxed(&first_record)) store_relaxed(&first_record, take_record());
  return load_relaxed(&first_record);
}

static ATOMIC(uint32_t) heap_numbers; /* given so far; relaxed: each is given once */

RESIDENT struct heap *heap_make(void) {
  struct heap *heap = take_record();
  if (!heap) return NULL;
  uint32_t number = fetch_add_relaxed(&heap_numbers, 1) + 1;
  heap->owner.tag = number << MAP_TAG_SHIFT;
  store_relaxed(&heap->tag, heap->owner.tag); /* the heap is nobody's yet */
  heap->owner.number = number;
  capacity_init(heap);
  /* Beside the counters: what is written before it is read costs one page fault, not two. */
  store_relaxed(&heap->owner.state, OWNER_RUNNING);
  count(&heap->owner.counters, COUNT_heaps_created);
  owner_register(&heap->owner);
  return heap;
}
