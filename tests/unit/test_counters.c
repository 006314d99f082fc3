/* src/base/counters: counts of a heap, totals of the process, and peaks. */
#include "base/counters.h"

#include "unit.h"

TEST(count) {
  struct counters counters = {0};
  count(&counters, COUNT_refills);
  count_add(&counters, COUNT_refills, 4);
  assert_int_equal(load_relaxed(&counters.value[COUNT_refills]), 5);
  for (unsigned which = 0; which < COUNTER_COUNT; which++)
    if (which != COUNT_refills) assert_int_equal(load_relaxed(&counters.value[which]), 0);
}

TEST(a_peak_never_falls) {
  count_peak(&totals.big_peak_bytes, 100);
  count_peak(&totals.big_peak_bytes, 7);
  assert_int_equal(load_relaxed(&totals.big_peak_bytes), 100);
  count_peak(&totals.big_peak_bytes, 101);
  assert_int_equal(load_relaxed(&totals.big_peak_bytes), 101);
}
