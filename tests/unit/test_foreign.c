/* Foreign code maps memory where a SuperSlab or a range has given its addresses back (src/pool). */
#include <sys/mman.h>

#include "ranges.h"
#include "slab/record.h"

enum { CLASS_32K = 40, SUPERSLABS = 40, RUNS = SLOTS_PER_SUPERSLAB / 4, PAGE = 4096 };

static void map_foreign(uintptr_t at) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  char *page = mmap((void *)at, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
  REQUIRE(page == (char *)at);
  memset(page, 0x5a, PAGE);
}

static void unmap_foreign(uintptr_t at) {
  const char *page = (const char *)at;
  for (unsigned byte = 0; byte < PAGE; byte++) REQUIRE(page[byte] == 0x5a);
  REQUIRE(munmap((void *)at, PAGE) == 0);
}

static void press(void) {
  struct purge purge = {
      .now_ms = (uint32_t)os_now_coarse_ms(), .calls_left = SIZE_MAX, .give_addresses = true};
  slab_pool_purge(&purge);
  range_purge(&purge, &counters);
}

static uint64_t map_calls(void) { return load_relaxed(&os_fake.calls[OS_CALL_MAP_AT]); }

/* ---- SuperSlabs ------------------------------------------------------------------------------ */

static struct slab *slabs[SUPERSLABS * RUNS];
static uintptr_t bases[SUPERSLABS];

static void acquire_all(size_t superslabs) {
  for (size_t index = 0; index < superslabs * RUNS; index++) {
    slabs[index] = acquire_slab(CLASS_32K, POOL_ALL, &counters);
    REQUIRE(slabs[index]);
    memset((void *)slabs[index]->base, 1, 1);
  }
}

static void release_all(size_t superslabs) {
  for (size_t index = 0; index < superslabs * RUNS; index++) {
    bases[index / RUNS] = slabs[index]->base - slabs[index]->base % CHUNK_BYTES;
    release_slab(slabs[index], 0, &counters);
  }
  press();
}

static bool is_used(uintptr_t chunk) {
  for (size_t index = 0; index < SUPERSLABS * RUNS; index++)
    if (slabs[index]->base - chunk < CHUNK_BYTES) return true;
  return false;
}

/* Every other one has a foreign page: the others serve, then new ones; those are left alone for
 * good. */
CHILD_TEST(superslabs) {
  acquire_all(SUPERSLABS);
  release_all(SUPERSLABS);
  for (size_t index = 0; index < SUPERSLABS; index += 2)
    map_foreign(bases[index] + index * 13 * PAGE);
  uint64_t existed = load_relaxed(&totals.superslabs);
  acquire_all(SUPERSLABS);
  REQUIRE(load_relaxed(&totals.superslabs) == existed + SUPERSLABS / 2);
  for (size_t index = 0; index < SUPERSLABS; index++)
    REQUIRE(is_used(bases[index]) == (index % 2 != 0));
  for (size_t index = 0; index < SUPERSLABS; index += 2)
    unmap_foreign(bases[index] + index * 13 * PAGE);

  uint64_t calls = map_calls(), before = load_relaxed(&totals.superslabs);
  REQUIRE(acquire_slab(CLASS_32K, POOL_ALL, &counters));
  REQUIRE(map_calls() <= calls + 2 && load_relaxed(&totals.superslabs) == before + 1);
}

/* All of them, for good: one call tries a few and takes a new one. */
CHILD_TEST(all_superslabs) {
  acquire_all(SUPERSLABS);
  release_all(SUPERSLABS);
  for (size_t index = 0; index < SUPERSLABS; index++) map_foreign(bases[index]);
  for (unsigned round = 0; round < 3; round++) {
    uint64_t calls = map_calls();
    REQUIRE(acquire_slab(CLASS_32K, POOL_ALL, &counters));
    REQUIRE(map_calls() <= calls + 20);
  }
  for (size_t index = 0; index < SUPERSLABS; index++) unmap_foreign(bases[index]);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static size_t take_and_touch(size_t granules) {
  size_t first = take(granules);
  REQUIRE(first != NO_GRANULE);
  bytes_of(first)[0] = 1;
  bytes_of(first + granules)[-1] = 1;
  return first;
}

/* One page in the middle of a large range: all but its granule serves on. */
CHILD_TEST(page_in_range) {
  enum { WHOLE = 1000, FOREIGN = 777 };
  size_t range = take_and_touch(WHOLE);
  give(range);
  press();
  REQUIRE(measure().mapped_bytes == 0);
  uintptr_t page = granule_address(range + FOREIGN) + 5 * PAGE;
  map_foreign(page);
  size_t frontier = load_relaxed(&window.frontier_chunk);
  size_t other = take_and_touch(WHOLE); /* does not fit: fresh ones */
  REQUIRE(other >= range + WHOLE && load_relaxed(&window.frontier_chunk) > frontier);
  frontier = load_relaxed(&window.frontier_chunk);
  REQUIRE(take_and_touch(FOREIGN) == range);
  REQUIRE(take_and_touch(WHOLE - FOREIGN - 1) == range + FOREIGN + 1);
  REQUIRE(load_relaxed(&window.frontier_chunk) == frontier);
  uint64_t calls = map_calls();
  REQUIRE(take_and_touch(1) != range + FOREIGN && map_calls() <= calls + 1); /* it is not tried … */
  os_fake_advance_ms(OCCUPIED_RETRY_MS + 1);
  /* … before it is time, and then with an end; the CLEAN ones come first. */
  while (measure().mapped_bytes != 0) {
    if (!measure().clean_bytes) break;
    take_and_touch(1);
  }
  size_t last = take_and_touch(1);
  REQUIRE(last != range + FOREIGN);
  unmap_foreign(page);
  os_fake_advance_ms(OCCUPIED_RETRY_MS + 1);
  for (unsigned left = 0; left < 40 && last != range + FOREIGN; left++) last = take_and_touch(1);
  REQUIRE(last == range + FOREIGN);
}

/* Many: each call asks the system a bounded number of times, and nothing is lost for good. */
CHILD_TEST(many_pages_in_ranges) {
  enum { RANGES = 50, EACH = 64, EVERY = 7 };
  size_t ranges[RANGES];
  for (size_t index = 0; index < RANGES; index++) ranges[index] = take_and_touch(EACH);
  for (size_t index = 0; index < RANGES; index++) give(ranges[index]);
  press();
  size_t first = ranges[0], end = ranges[RANGES - 1] + EACH;
  for (size_t granule = first; granule < end; granule += EVERY)
    map_foreign(granule_address(granule) + 3 * PAGE);
  for (size_t round = 0; round < 200; round++) {
    uint64_t calls = map_calls();
    size_t granules = 1 + round % 40, taken = take_and_touch(granules);
    REQUIRE(map_calls() <= calls + 8);
    for (size_t granule = first; granule < end; granule += EVERY)
      REQUIRE(granule < taken || granule >= taken + granules);
    if (round % 3) give(taken);
    if (round % 10 == 9) press();
    if (round % 50 == 49) os_fake_advance_ms(OCCUPIED_RETRY_MS + 1);
  }
  for (size_t granule = first; granule < end; granule += EVERY)
    unmap_foreign(granule_address(granule) + 3 * PAGE);
}

/* A chunk that was refused after it was mapped is given back once: a foreign mapping there then
 * stays. */
CHILD_TEST(refused_after_mapping) {
  size_t range = take_and_touch(1);
  uintptr_t next = chunk_address(load_relaxed(&window.frontier_chunk));
  os_fake_fail(1u << OS_CALL_COMMIT, 1, UINT64_MAX);
  REQUIRE(take((size_t)2000 * GRANULES_PER_CHUNK) == NO_GRANULE); /* its map entries are refused */
  os_fake_fail_none();
  map_foreign(next);
  press();
  give(range);
  press();
  REQUIRE(take_and_touch(40) != NO_GRANULE && acquire_slab(CLASS_32K, POOL_ALL, &counters));
  unmap_foreign(next);
}
