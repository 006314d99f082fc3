/* snapshot.h: hakmem's figures at one moment, summed over all heaps.
 *
 * Reading stops no thread: counters are relaxed and each is exact by itself, but two of them may be
 * a few operations apart. */
#ifndef HAK_OBSERVE_SNAPSHOT_H
#define HAK_OBSERVE_SNAPSHOT_H

#include "base/counters.h"
#include "map/size_class.h"

enum { CLASS_COUNTER_COUNT = sizeof(struct class_counters) / sizeof(uint64_t) };

struct snapshot {
  uint64_t counters[COUNTER_COUNT];
#define TOTAL(name, role, unit, meaning) uint64_t name;
#include "base/counters.def"
  uint64_t class_counters[CLASS_COUNT][CLASS_COUNTER_COUNT]; /* in their order */
  uint64_t mapped_bytes;                                     /* SuperSlabs and range chunks */
  uint64_t dirty_free_bytes;                                 /* free, but not purged yet */
  uint64_t slab_bytes_out; /* in blocks of slabs: live, or in magazines */
};

void snapshot_take(struct snapshot *snapshot);

#endif
