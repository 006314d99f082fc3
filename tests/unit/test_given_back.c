/* totals.purged_bytes and refaulted_bytes: nothing is taken into use again that was not given back,
 * whichever way it went, each page once. */
#include "ranges.h"
#include "slab/slab.h"

enum { CHUNK_GRANULES = GRANULES_PER_CHUNK };

static uint64_t given(void) { return load_relaxed(&totals.purged_bytes) >> GRANULE_SHIFT; }
static uint64_t used_again(void) { return load_relaxed(&totals.refaulted_bytes) >> GRANULE_SHIFT; }

static void give_all_back(bool give_addresses) {
  struct purge purge = PURGE_EVERYTHING;
  purge.now_ms = (uint32_t)os_now_coarse_ms();
  purge.give_addresses = give_addresses;
  range_purge(&purge, &counters);
  slab_pool_purge(&purge);
}

/* Of a chunk eight granules were used; all of it is unmapped, and taken again. */
CHILD_TEST(unmap) {
  range_give(take(8), 0, &counters);
  give_all_back(true);
  REQUIRE(given() == 8 && used_again() == 0);
  REQUIRE(take(CHUNK_GRANULES) != NO_GRANULE);
  REQUIRE(given() == 8 && used_again() == 8);
}

/* What cannot be mapped again is not used again, however often that is tried. */
CHILD_TEST(map_in_vain) {
  range_give(take(CHUNK_GRANULES), 0, &counters);
  give_all_back(true);
  os_fake_fail(OS_CALLS_ALL, 1, UINT64_MAX);
  for (unsigned attempt = 0; attempt < 5; attempt++) REQUIRE(take(4) == NO_GRANULE);
  os_fake.failing_kinds = 0;
  REQUIRE(take(CHUNK_GRANULES) != NO_GRANULE);
  REQUIRE(given() == CHUNK_GRANULES && used_again() <= CHUNK_GRANULES);
}

/* Pages that were moved in are mapped anew. */
CHILD_TEST(remap) {
  size_t granule = take(8);
  range_note_moved(granule);
  range_give(granule, 0, &counters);
  give_all_back(false);
  REQUIRE(take(8) == granule);
  REQUIRE(given() == 8 && used_again() == 8);
}

/* A range that the program has marked is mapped anew when it is freed; if the system refuses, when
 * it is purged. */
CHILD_TESTS(marked, bool, is_refused, false, true) {
  set_up();
  size_t granule = take(CHUNK_GRANULES), wall = take(1);
  os_fake.marked = (void *)(granule_address(granule) + 100); /* NOLINT */
  if (is_refused) os_fake_fail(1u << OS_CALL_REMAP | 1u << OS_CALL_PURGE, 1, UINT64_MAX);
  range_give(granule, 0, &counters);
  REQUIRE((given() == CHUNK_GRANULES) == !is_refused && !os_fake.marked == !is_refused);
  os_fake_fail_none();
  give_all_back(false);
  REQUIRE(given() == CHUNK_GRANULES && !os_fake.marked);
  REQUIRE(take(CHUNK_GRANULES) == granule && range_info(granule)->is_zero);
  range_give(wall, 0, &counters);
}

/* The part that stays is mapped anew later: its last page was inside the block. */
CHILD_TEST(marked_and_shrunk) {
  size_t granule = take(2 * CHUNK_GRANULES);
  os_fake.marked = (void *)(granule_address(granule) + 100); /* NOLINT */
  REQUIRE(range_shrink(granule, CHUNK_GRANULES, &counters));
  REQUIRE(given() == CHUNK_GRANULES && os_fake.marked);
  range_give(granule, 0, &counters);
  REQUIRE(given() == 2 * CHUNK_GRANULES && !os_fake.marked);
}

CHILD_TEST(unmap_slabs) {
  struct slab *slab = acquire_slab(0, POOL_ALL, &counters);
  REQUIRE(slab);
  uint32_t slots = slab->slot_count;
  release_slab(slab, 0, &counters);
  for (unsigned round = 0; round < 3; round++) {
    os_fake_advance_ms(100000);
    give_all_back(true);
  }
  REQUIRE(!load_relaxed(&totals.superslabs_mapped) && given() == slots && used_again() == 0);
  REQUIRE(acquire_slab(0, POOL_ALL, &counters));
  REQUIRE(given() == slots && used_again() == slots);
}
