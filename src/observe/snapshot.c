#include "observe/snapshot.h"

#include "cache/heap.h"
#include "named/named_heap.h"
#include "pool/slab_pool.h"
#include "ranges/range.h"

static void add_counters(struct snapshot *snapshot, const struct counters *counters) {
  for (unsigned which = 0; which < COUNTER_COUNT; which++)
    snapshot->counters[which] += load_relaxed(&counters->value[which]);
}

static void add_class_counters(struct snapshot *snapshot, const struct heap *heap) {
  /* acquire: zeroed before; pairs with class_figures_make. */
  const struct class_counters *counters = load_acquire(&heap->class_counters);
  for (unsigned class = 0; counters && class < CLASS_COUNT; class ++) {
    uint64_t *sums = snapshot->class_counters[class];
#define CLASS_COUNTER(name, unit, meaning) *sums++ += load_relaxed(&counters[class].name);
#include "base/counters.def"
  }
}

static void add_owners(struct snapshot *snapshot) {
  int64_t bytes_out = 0;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    add_counters(snapshot, &owner->counters);
    add_class_counters(snapshot, heap_of_owner(owner));
    bytes_out += load_relaxed(&owner->bytes_out);
  }
  const struct hak_heap *heap;
  for (uint32_t number = 0; (heap = named_next(&number));) {
    add_counters(snapshot, &heap->owner.counters);
    bytes_out += load_relaxed(&heap->owner.bytes_out);
  }
  snapshot->slab_bytes_out = bytes_out > 0 ? (uint64_t)bytes_out : 0;
}

void snapshot_take(struct snapshot *snapshot) {
  struct slab_pool_sizes slabs;
  struct range_sizes ranges;
  slab_pool_measure(&slabs);
  range_measure(&ranges);
  *snapshot = (struct snapshot){
#define TOTAL(name, role, unit, meaning) .name = load_relaxed(&totals.name),
#include "base/counters.def"
      .mapped_bytes = slabs.mapped_bytes + ranges.mapped_bytes,
      .dirty_free_bytes = slabs.dirty_bytes + ranges.dirty_bytes,
  };
  add_counters(snapshot, &stray_counters);
  add_owners(snapshot);
}
