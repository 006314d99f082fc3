/* counters.h: what is counted, and where.
 *
 * Each heap has a block of counters, written by its thread with relaxed stores, and now and then by a thread that
 * sweeps it under its latch; a step may be lost when both count at once, none is torn.  A reader sums
 * them all.  What happens seldom, or belongs to nobody, is counted once for the process, atomically.
 * Nothing on the two fast paths counts.  base/counters.def says what each figure means. */
#ifndef HAK_BASE_COUNTERS_H
#define HAK_BASE_COUNTERS_H

#include "base/atomic.h"
#include "base/compiler.h"

enum counter {
#define COUNTER(name, unit, meaning) COUNT_##name,
#include "base/counters.def"
  COUNTER_COUNT
};

struct counters {
  ATOMIC(uint64_t) value[COUNTER_COUNT];
};

/* Of one class in one heap. */
struct class_counters {
#define CLASS_COUNTER(name, unit, meaning) ATOMIC(uint64_t) name;
#include "base/counters.def"
};

/* Of the process; relaxed, any thread adds. */
struct totals {
#define TOTAL(name, role, unit, meaning) ATOMIC(uint64_t) name;
#include "base/counters.def"
};
extern struct totals totals;

INLINE void count_add(struct counters *counters, enum counter which, uint64_t amount) {
  add_single_writer(&counters->value[which], amount);
}

/* The most that a figure has been; another thread may be raising it, too. */
INLINE void count_peak(ATOMIC(uint64_t) *peak, uint64_t now) {
  uint64_t before = load_relaxed(peak);
  /* No order is needed: the figure alone matters. */
  while (UNLIKELY(now > before) && !cas_weak_acq_rel(peak, &before, now)) {
  }
}

INLINE void count(struct counters *counters, enum counter which) { count_add(counters, which, 1); }

#endif
