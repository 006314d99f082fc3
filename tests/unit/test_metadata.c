/* src/map/metadata: records: zeroed, apart, counted, and refused without a loss. */
#include "map/metadata.h"

#include "base/counters.h"
#include "child.h"
#include "fake/os_fake.h"
#include "map/window.h"

static uint64_t counted_bytes(void) { return load_relaxed(&totals.metadata_bytes); }

CHILD_TEST(records_lie_one_after_the_other) {
  REQUIRE(window_init(UINT64_C(64) << 30));
  uint64_t before = counted_bytes();
  char *first = metadata_allocate(1), *second = metadata_allocate(CACHE_LINE_BYTES + 1);
  REQUIRE(first && (uintptr_t)first % CACHE_LINE_BYTES == 0);
  REQUIRE(second == first + CACHE_LINE_BYTES);
  REQUIRE((char *)metadata_allocate(1) == second + 2 * CACHE_LINE_BYTES);
  for (unsigned byte = 0; byte < 4 * CACHE_LINE_BYTES; byte++) REQUIRE(first[byte] == 0);
  REQUIRE(counted_bytes() - before == 4 * CACHE_LINE_BYTES);
}

/* A record never spans two chunks: what is left of one stays empty. */
CHILD_TEST(a_chunk_that_is_too_small_is_left) {
  REQUIRE(window_init(UINT64_C(64) << 30));
  char *first = metadata_allocate(RECORD_CHUNK_BYTES / 2 + CACHE_LINE_BYTES);
  char *next = metadata_allocate(RECORD_CHUNK_BYTES / 2);
  REQUIRE(first && next);
  REQUIRE((uintptr_t)first / CHUNK_BYTES != (uintptr_t)next / CHUNK_BYTES);
  next[RECORD_CHUNK_BYTES / 2 - 1] = 1; /* all of it is memory */
}

CHILD_TEST(a_refusal_costs_nothing) {
  REQUIRE(window_init(UINT64_C(64) << 30));
  uint64_t before = counted_bytes(), committed = load_relaxed(&totals.committed_bytes);
  os_fake_fail(OS_CALLS_ALL, 1, UINT64_MAX);
  REQUIRE(!metadata_allocate(64));
  REQUIRE(counted_bytes() == before);
  REQUIRE(load_relaxed(&totals.committed_bytes) == committed);
  os_fake_fail_none();
  REQUIRE(metadata_allocate(64));
}

/* Threads that all find the chunk used up. */
enum { THREADS = 8 };

static void *a_record(void *found) {
  *(char **)found = metadata_allocate(CACHE_LINE_BYTES);
  return NULL;
}

CHILD_TEST(one_thread_maps_a_chunk_for_all) {
  REQUIRE(window_init(UINT64_C(64) << 30));
  REQUIRE(metadata_allocate(RECORD_CHUNK_BYTES));
  os_fake_reset();
  os_fake.is_multi_threaded = true;
  os_fake.map_ms = 20;
  char *records[THREADS];
  on_threads(THREADS, a_record, records, sizeof records[0]);
  for (unsigned i = 0; i < THREADS; i++) {
    REQUIRE(records[i]);
    records[i][CACHE_LINE_BYTES - 1] = 1; /* it is memory */
    for (unsigned other = 0; other < i; other++) REQUIRE(records[i] != records[other]);
  }
  REQUIRE(load_relaxed(&os_fake.calls[OS_CALL_MAP_AT]) == 1);
}
