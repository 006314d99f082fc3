/* counters.h: the counters of each heap and of the process.
 *
 * Each heap has a block of counters, written by its thread with relaxed stores, and sometimes by a
 * thread that sweeps the heap under its latch. A step may be lost when both count at once; a value
 * is never torn. A reader adds up all heaps' counters. Rare events, and events outside any heap,
 * are counted once for the process, atomically. The two fast paths count nothing. counters.def says
 * what each is. */
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

/* One class in one heap. */
struct class_counters {
#define CLASS_COUNTER(name, unit, meaning) ATOMIC(uint64_t) name;
#include "base/counters.def"
};

/* The process's figures; relaxed, any thread adds. */
struct totals {
#define TOTAL(name, role, unit, meaning) ATOMIC(uint64_t) name;
#include "base/counters.def"
};
extern struct totals totals;

INLINE void count_add(struct counters *counters, enum counter which, uint64_t amount) {
  add_single_writer(&counters->value[which], amount);
}

/* Raises a figure's maximum; another thread may be raising it too. */
INLINE void count_peak(ATOMIC(uint64_t) *peak, uint64_t now) {
  uint64_t before = load_relaxed(peak);
  /* No order is needed: the figure alone matters. */
  while (UNLIKELY(now > before) && !cas_weak_acq_rel(peak, &before, now)) {
  }
}

INLINE void count(struct counters *counters, enum counter which) { count_add(counters, which, 1); }

#endif
