/* src/large/whole_cache: freed Large ranges kept whole, by class. */
#include "large/whole_cache.h"

#include "ranges.h"

#define BUDGET_BYTES ((uint64_t)64 << 20)
enum { CLASS = SLAB_CLASS_COUNT + 2 }; /* three granules */

static struct whole_cache cache;

static size_t fresh(unsigned class) { return ranges_fresh(large_class_granules(class)); }

static int keep_and_find(const void *unused) {
  (void)unused;
  ranges_set_up();
  size_t first = fresh(CLASS), second = fresh(CLASS), larger = fresh(CLASS + 1);
  REQUIRE(whole_cache_take(&cache, CLASS) == NO_GRANULE);
  REQUIRE(whole_cache_put(&cache, CLASS, first, BUDGET_BYTES));
  REQUIRE(whole_cache_put(&cache, CLASS, second, BUDGET_BYTES));
  REQUIRE(whole_cache_put(&cache, CLASS + 1, larger, BUDGET_BYTES));
  REQUIRE(load_relaxed(&cache.cached_bytes) == 10 * GRANULE_BYTES);
  REQUIRE(whole_cache_take(&cache, CLASS) == second);
  REQUIRE(whole_cache_take(&cache, CLASS) == first);
  REQUIRE(whole_cache_take(&cache, CLASS) == NO_GRANULE);
  REQUIRE(whole_cache_take(&cache, CLASS + 1) == larger);
  REQUIRE(load_relaxed(&cache.cached_bytes) == 0);
  return 0;
}

static int exceed_the_budget(const void *unused) {
  (void)unused;
  ranges_set_up();
  REQUIRE(whole_cache_put(&cache, CLASS, fresh(CLASS), 4 * GRANULE_BYTES));
  REQUIRE(!whole_cache_put(&cache, CLASS, fresh(CLASS), 4 * GRANULE_BYTES));
  REQUIRE(whole_cache_put(&cache, CLASS - 2, fresh(CLASS - 2), 4 * GRANULE_BYTES));
  return 0;
}

static int age(const void *unused) {
  (void)unused;
  ranges_set_up();
  size_t old = fresh(CLASS);
  REQUIRE(whole_cache_put(&cache, CLASS, old, BUDGET_BYTES));
  os_fake_advance_ms(500);
  size_t young[2] = {fresh(CLASS), fresh(CLASS)};
  for (unsigned at = 0; at < 2; at++)
    REQUIRE(whole_cache_put(&cache, CLASS, young[at], BUDGET_BYTES));
  os_fake_advance_ms(500);
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .decay_ms = 1000,
                        .bytes_left = SIZE_MAX,
                        .calls_left = SIZE_MAX};
  whole_cache_purge(&cache, &purge, &counters);
  REQUIRE(purge.work_remains && load_relaxed(&cache.cached_bytes) == 6 * GRANULE_BYTES);
  REQUIRE(range_take_used(&(struct range_request){3, 1, 0, FROM_ANY}, &counters) ==
          old);                                         /* the arenas have it */
  REQUIRE(whole_cache_take(&cache, CLASS) == young[1]); /* in the order they had */
  REQUIRE(whole_cache_take(&cache, CLASS) == young[0]);
  return 0;
}

CHILD_TEST(keep_and_find)
CHILD_TEST(exceed_the_budget)
CHILD_TEST(age)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keep_and_find),
      cmocka_unit_test(test_exceed_the_budget),
      cmocka_unit_test(test_age),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
