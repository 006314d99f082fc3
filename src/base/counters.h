/* counters.h: a block of counters.
 *
 * Each heap has one, written by its thread with relaxed stores, and now and then by who sweeps it under
 * its latch; a step may be lost when both count at once, none is torn.  A reader sums them all.  Nothing on the two fast paths counts. */
#ifndef HAK_BASE_COUNTERS_H
#define HAK_BASE_COUNTERS_H

#include "base/atomic.h"
#include "base/compiler.h"

enum counter {
#define COUNTER(name, meaning) COUNT_##name,
#include "base/counters.def"
#undef COUNTER
  COUNTER_COUNT
};

struct counters {
  ATOMIC(uint64_t) value[COUNTER_COUNT];
};

INLINE void count_add(struct counters *counters, enum counter which, uint64_t amount) {
  add_single_writer(&counters->value[which], amount);
}

INLINE void count(struct counters *counters, enum counter which) { count_add(counters, which, 1); }

#endif
