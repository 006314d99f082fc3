/* src/large/site_cache: freed ranges found again by call site. */
#include "large/site_cache.h"

#include "ranges.h"

#define BUDGET_BYTES ((uint64_t)64 << 20)

static struct site_cache cache;

static int keep_and_find(const void *unused) {
  (void)unused;
  ranges_set_up();
  size_t granule = ranges_fresh(10);
  REQUIRE(site_cache_put(&cache, 7, granule, BUDGET_BYTES));
  REQUIRE(load_relaxed(&cache.cached_bytes) == 10 * GRANULE_BYTES);
  REQUIRE(site_cache_take(&cache, 7, 11, 20) == NO_GRANULE); /* too small */
  REQUIRE(site_cache_take(&cache, 7, 5, 9) == NO_GRANULE);   /* too large */
  REQUIRE(site_cache_take(&cache, 7, 9, 10) == granule);
  REQUIRE(site_cache_take(&cache, 7, 9, 10) == NO_GRANULE &&
          load_relaxed(&cache.cached_bytes) == 0);
  return 0;
}

static int want_what_repeats(const void *unused) {
  (void)unused;
  ranges_set_up();
  site_cache_take(&cache, 7, 9, 10);
  REQUIRE(!site_cache_wants(&cache, 7, 9));
  site_cache_take(&cache, 7, 9, 10);
  REQUIRE(site_cache_wants(&cache, 7, 9) && site_cache_wants(&cache, 7, 10));
  REQUIRE(!site_cache_wants(&cache, 7, 8) && !site_cache_wants(&cache, 7, 11));
  site_cache_take(&cache, 7, 8, 8);
  REQUIRE(!site_cache_wants(&cache, 7, 8) && !site_cache_wants(&cache, 7, 9));
  return 0;
}

static int fill_a_shard(const void *unused) {
  (void)unused;
  ranges_set_up();
  for (unsigned slot = 0; slot < SLOTS_PER_SHARD; slot++)
    REQUIRE(site_cache_put(&cache, 7, ranges_fresh(1), BUDGET_BYTES));
  REQUIRE(!site_cache_put(&cache, 7, ranges_fresh(1), BUDGET_BYTES));
  REQUIRE(load_relaxed(&cache.cached_bytes) == SLOTS_PER_SHARD * GRANULE_BYTES);
  return 0;
}

static int exceed_the_budget(const void *unused) {
  (void)unused;
  ranges_set_up();
  REQUIRE(site_cache_put(&cache, 1, ranges_fresh(3), 4 * GRANULE_BYTES));
  REQUIRE(!site_cache_put(&cache, 2, ranges_fresh(2), 4 * GRANULE_BYTES));
  REQUIRE(site_cache_put(&cache, 2, ranges_fresh(1), 4 * GRANULE_BYTES));
  return 0;
}

static int age(const void *unused) {
  (void)unused;
  ranges_set_up();
  size_t old = ranges_fresh(2);
  REQUIRE(site_cache_put(&cache, 1, old, BUDGET_BYTES));
  os_fake_advance_ms(500);
  size_t young = ranges_fresh(3);
  REQUIRE(site_cache_put(&cache, 1, young, BUDGET_BYTES));
  os_fake_advance_ms(500);
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .decay_ms = 1000,
                        .bytes_left = SIZE_MAX,
                        .calls_left = SIZE_MAX};
  site_cache_purge(&cache, &purge, &counters);
  REQUIRE(purge.work_remains && load_relaxed(&cache.cached_bytes) == 3 * GRANULE_BYTES);
  REQUIRE(site_cache_take(&cache, 1, 2, 2) == NO_GRANULE);
  REQUIRE(range_take_used(&(struct range_request){2, 1, 0, FROM_ANY}, &counters) ==
          old); /* the arenas have it */
  REQUIRE(site_cache_take(&cache, 1, 3, 3) == young);
  return 0;
}

CHILD_TEST(keep_and_find)
CHILD_TEST(want_what_repeats)
CHILD_TEST(fill_a_shard)
CHILD_TEST(exceed_the_budget)
CHILD_TEST(age)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keep_and_find), cmocka_unit_test(test_want_what_repeats),
      cmocka_unit_test(test_fill_a_shard),  cmocka_unit_test(test_exceed_the_budget),
      cmocka_unit_test(test_age),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
