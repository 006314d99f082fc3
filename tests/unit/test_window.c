/* src/map/window and src/map/metadata: the address window and hakmem's own memory. */
#include "map/window.h"

#include "base/counters.h"
#include "child.h"
#include "map/metadata.h"
#include "os/os_fake.h"

#define GIB ((uint64_t)1 << 30)

static int refuse_every_address_before(const void *argument) {
  (void)argument;
  int on_the_stack;
  REQUIRE(!is_in_window((uintptr_t)&on_the_stack));
  REQUIRE(owner_map_entry((uintptr_t)&on_the_stack) == 0);
  REQUIRE(owner_map_entry(0) == 0);
  REQUIRE(window_grow(1) == NO_CHUNK);
  return 0;
}

static void test_before_it_is_placed_nothing_is_ours(void **state) {
  (void)state;
  assert_child_succeeds(refuse_every_address_before, NULL);
}

static int place(const void *argument) {
  (void)argument;
  REQUIRE(window_init(64 * GIB));
  REQUIRE(window.base % CHUNK_BYTES == 0);
  REQUIRE(window.chunk_limit == 64 * GIB / CHUNK_BYTES);
  REQUIRE(is_in_window(window.base) && !is_in_window(window.base - 1));
  REQUIRE(is_in_window(window.base + 64 * GIB - 1) && !is_in_window(window.base + 64 * GIB));
  REQUIRE(load_relaxed(&window.granule_count) == 0); /* nothing is committed before it is used */
  return 0;
}

static void test_placing(void **state) {
  (void)state;
  assert_child_succeeds(place, NULL);
}

static int place_beside_others(const void *argument) {
  (void)argument;
  os_fake.random = 1;
  REQUIRE(window_init(64 * GIB));
  store_relaxed(&os_fake.occupied_places,
                1); /* of the first chunk; then the whole window is asked for */
  os_fake.occupied_windows = 3;
  REQUIRE(window_grow(1) == 0);
  REQUIRE(os_fake.occupied_windows == 0);
  REQUIRE(os_fake.random == 6);                     /* the fifth draw */
  memset((void *)chunk_address(0), 1, CHUNK_BYTES); /* it is there */
  return 0;
}

/* A draw that ends at an occupied place is no verdict: while nobody has a chunk the next attempt draws again. */
static int draw_again_until_a_chunk_is_there(const void *unused) {
  (void)unused;
  REQUIRE(window_init(64 * GIB));
  uintptr_t drawn = window.base;
  store_relaxed(&os_fake.occupied_places,
                6); /* the first chunk's, three times before and after a draw */
  REQUIRE(window_grow(1) == 3 && window.base != drawn);
  drawn = window.base;
  store_relaxed(&os_fake.occupied_places, 1);
  REQUIRE(window_grow(1) == 5 && window.base == drawn); /* from then on it stays */
  return 0;
}

static void test_draw_again(void **state) {
  (void)state;
  assert_child_succeeds(draw_again_until_a_chunk_is_there, NULL);
}

static void test_a_place_that_others_took_is_left(void **state) {
  (void)state;
  assert_child_succeeds(place_beside_others, NULL);
}

static int place_within_limit(const void *argument) {
  (void)argument;
  os_fake.address_space_limit_bytes = 256 << 20;
  REQUIRE(window_init(1024 * GIB));
  REQUIRE(window.chunk_limit * CHUNK_BYTES == 4 * os_fake.address_space_limit_bytes);
  REQUIRE(load_relaxed(&os_fake.address_bytes) < os_fake.address_space_limit_bytes / 1000);
  return 0;
}

static void test_a_limit_shrinks_it(void **state) {
  (void)state;
  assert_child_succeeds(place_within_limit, NULL);
}

static int place_when_refused(const void *argument) {
  (void)argument;
  os_fake_fail(1u << OS_CALL_RESERVE, 1, 3);
  REQUIRE(window_init(64 * GIB));
  REQUIRE(window.chunk_limit == 8 * GIB / CHUNK_BYTES); /* halved three times */
  return 0;
}

static void test_a_refusal_shrinks_it(void **state) {
  (void)state;
  assert_child_succeeds(place_when_refused, NULL);
}

static int give_up(const void *argument) {
  (void)argument;
  os_fake_fail(1u << OS_CALL_RESERVE, 1, UINT64_MAX);
  REQUIRE(!window_init(64 * GIB));
  return 0;
}

static void test_not_even_the_smallest_fits(void **state) {
  (void)state;
  assert_child_succeeds(give_up, NULL);
}

static int grow(const void *argument) {
  (void)argument;
  REQUIRE(window_init(GIB));
  size_t first = window_grow(1), next = window_grow(3);
  REQUIRE(first == 0 && next == 1 && window_grow(1) == 4);
  memset((void *)chunk_address(next), 1, 3 * CHUNK_BYTES); /* it is there */
  REQUIRE(owner_map_entry(chunk_address(2)) == 0);
  size_t granule = granule_of(chunk_address(2) + GRANULE_BYTES);
  owner_map_set(granule, 0x1234);
  REQUIRE(owner_map_entry(chunk_address(2) + GRANULE_BYTES) == 0x1234);
  REQUIRE(owner_map_entry(chunk_address(2) + 2 * GRANULE_BYTES - 1) == 0x1234);
  REQUIRE(owner_map_entry(chunk_address(2) + 2 * GRANULE_BYTES) == 0);
  owner_map_clear(granule, 1);
  REQUIRE(owner_map_entry(chunk_address(2) + GRANULE_BYTES) == 0);
  return 0;
}

static void test_growing(void **state) {
  (void)state;
  assert_child_succeeds(grow, NULL);
}

static int grow_when_refused(const void *argument) {
  (void)argument;
  REQUIRE(window_init(GIB));
  REQUIRE(window_grow(1) == 0);
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, 1);
  REQUIRE(window_grow(2) == NO_CHUNK);
  REQUIRE(window_grow(2) == 1); /* the addresses were put back */
  store_relaxed(&os_fake.occupied_places, 2);
  REQUIRE(window_grow(1) == 5); /* past what belongs to somebody else */
  os_fake_fail(1u << OS_CALL_COMMIT, 1, 1);
  REQUIRE(window_grow(64) == NO_CHUNK);
  REQUIRE(window_grow(64) == 6);
  return 0;
}

static void test_growing_when_refused(void **state) {
  (void)state;
  assert_child_succeeds(grow_when_refused, NULL);
}

static int grow_to_the_end(const void *argument) {
  (void)argument;
  REQUIRE(window_init(64 << 20));
  for (size_t chunk = 0; chunk < 32; chunk++) REQUIRE(window_grow(1) == chunk);
  REQUIRE(window_grow(1) == NO_CHUNK);
  REQUIRE(window_grow(SIZE_MAX) == NO_CHUNK);
  REQUIRE(load_relaxed(&window.granule_count) == 32 * GRANULES_PER_CHUNK);
  return 0;
}

static void test_it_has_an_end(void **state) {
  (void)state;
  assert_child_succeeds(grow_to_the_end, NULL);
}

static int allocate_metadata(const void *argument) {
  (void)argument;
  REQUIRE(window_init(GIB));
  char *before = NULL;
  for (size_t bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
    for (unsigned repeat = 0; repeat < 50; repeat++) {
      char *record = metadata_allocate(bytes);
      REQUIRE((uintptr_t)record % CACHE_LINE_BYTES == 0 && record != before);
      for (size_t at = 0; at < bytes; at++) REQUIRE(record[at] == 0);
      memset(record, 0xff, bytes); /* shows where two records overlap */
      before = record;
    }
  }
  return 0;
}

static void test_metadata_is_zeroed_and_apart(void **state) {
  (void)state;
  assert_child_succeeds(allocate_metadata, NULL);
}

static int allocate_metadata_when_refused(const void *argument) {
  (void)argument;
  REQUIRE(window_init(GIB));
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, 2);
  REQUIRE(!metadata_allocate(64) && !metadata_allocate(64));
  REQUIRE(load_relaxed(&totals.metadata_bytes) == 0);
  REQUIRE(metadata_allocate(65));
  REQUIRE(load_relaxed(&totals.metadata_bytes) == 128);
  return 0;
}

static void test_metadata_when_refused(void **state) {
  (void)state;
  assert_child_succeeds(allocate_metadata_when_refused, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_draw_again),
      cmocka_unit_test(test_before_it_is_placed_nothing_is_ours),
      cmocka_unit_test(test_placing),
      cmocka_unit_test(test_a_place_that_others_took_is_left),
      cmocka_unit_test(test_a_limit_shrinks_it),
      cmocka_unit_test(test_a_refusal_shrinks_it),
      cmocka_unit_test(test_not_even_the_smallest_fits),
      cmocka_unit_test(test_growing),
      cmocka_unit_test(test_growing_when_refused),
      cmocka_unit_test(test_it_has_an_end),
      cmocka_unit_test(test_metadata_is_zeroed_and_apart),
      cmocka_unit_test(test_metadata_when_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
