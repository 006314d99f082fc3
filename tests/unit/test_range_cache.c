/* src/ranges/range_cache: freed Large ranges found again by class and call site, by every
 * thread. */
#include "ranges/range_cache.h"

#include "ranges.h"

CHILD_TEST(keep_and_find) {
  size_t own = fresh(8), others = fresh(7);
  range_cache_give(own, CLASS, &counters);
  range_cache_give(others, CLASS, &counters);
  REQUIRE(take_cached(CLASS + 1, 8) == NO_GRANULE);
  REQUIRE(take_cached(CLASS, 8) == own); /* its own before others */
  REQUIRE(take_cached(CLASS, 8) == others);
  REQUIRE(take_cached(CLASS, 8) == NO_GRANULE);
}

/* Where ends count, ranges of other ends stay, the call site's too. */
CHILD_TEST(find_by_ends) {
  size_t granules[2];
  for (unsigned end = 0; end < RANGE_ENDS; end++) {
    size_t granule = fresh(8);
    range_info(granule)->end = (uint8_t)end;
    range_cache_give(granule, CLASS, &counters);
  }
  store_relaxed(&density_end_mask, RANGE_ENDS - 1);
  for (uint8_t end = 0; end < RANGE_ENDS; end += 3) {
    const struct range_wish wish = {CLASS, end ? 8 : 9, end};
    REQUIRE(range_cache_take(&wish, granules, 2, &counters) == 1);
    REQUIRE(range_info(granules[0])->end == end);
    REQUIRE(range_cache_take(&wish, granules, 2, &counters) == 0);
  }
  store_relaxed(&density_end_mask, 0);
  for (unsigned rest = 0; rest < RANGE_ENDS - 3; rest++)
    REQUIRE(take_cached(CLASS, 8) != NO_GRANULE);
  REQUIRE(take_cached(CLASS, 8) == NO_GRANULE);
}

CHILD_TEST(find_some_at_once) {
  size_t granules[3];
  for (unsigned index = 0; index < 5; index++) range_cache_give(fresh(7), CLASS, &counters);
  REQUIRE(range_cache_take(&(struct range_wish){CLASS, 7, 0}, granules, 3, &counters) == 3);
  REQUIRE(granules[0] != granules[1] && granules[1] != granules[2] && granules[0] != granules[2]);
  REQUIRE(range_cache_take(&(struct range_wish){CLASS, 7, 0}, granules, 3, &counters) == 2);
  REQUIRE(range_cache_take(&(struct range_wish){CLASS, 7, 0}, granules, 3, &counters) == 0);
}

/* What there is no room for goes to the arenas. */
CHILD_TEST(hold_so_much) {
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++) {
    uint64_t dirty = dirty_granules();
    size_t granules = large_granules_of_class(class), kept = 0;
    for (;; kept++) {
      range_cache_give(fresh_of(granules, 7), class, &counters);
      if (dirty_granules() != dirty) break;
    }
    REQUIRE(kept * class_bytes(class) <= 1 << 20);
  }
}

CHILD_TEST(go_back_by_age) {
  size_t old = fresh(7);
  range_cache_give(old, CLASS, &counters);
  os_fake_advance_ms(600);
  size_t young = fresh(7);
  range_cache_give(young, CLASS, &counters);
  os_fake_advance_ms(400);
  struct purge purge = {
      .now_ms = (uint32_t)os_now_coarse_ms(), .decay_ms = 1000, .calls_left = SIZE_MAX};
  range_cache_purge(&purge, &counters);
  REQUIRE(purge.work_remains && dirty_granules() == GRANULES);
  REQUIRE(take_cached(CLASS, 7) == young);
  REQUIRE(take_cached(CLASS, 7) == NO_GRANULE);
}
