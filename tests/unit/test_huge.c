/* map/huge.h where the kernel gives huge pages unasked: a part of one is never given back without telling the kernel, which
 * would bring it back; what may have them is counted as a whole; elsewhere nothing is asked. */
#include "map/huge.h"

#include "base/counters.h"
#include "unit.h"
#include "workload.h"

enum { BLOCK_BYTES = 1000, BLOCKS = 120000, GAP = 40, RANDOM_RUNS = 16 };
#define MIB ((size_t)1 << 20)

static void age(void) {
  os_fake_advance_ms(60000);
  hak_purge(true);
}

/* Records stay. */
static uint64_t held_bytes(void) {
  return load_relaxed(&totals.committed_bytes) - load_relaxed(&totals.metadata_bytes);
}

/* Which blocks live on. */
static bool none(size_t index, const void *block) {
  (void)index, (void)block;
  return false;
}

static bool one_in_a_gap(size_t index, const void *block) {
  (void)block;
  return index % GAP == 0;
}

static bool whole_slabs(size_t index, const void *block) {
  (void)index;
  return (uintptr_t)block / GRANULE_BYTES % 8 == 0;
}
typedef bool lives_function(size_t index, const void *block);

/* Enough for SuperSlabs with huge pages; the first ones of a process have none. */
static void used_in_full(const void *argument) {
  lives_function *lives = *(lives_function *const *)argument;
  static void *blocks[BLOCKS];
  os_fake.are_huge_pages_always = true;
  hak_free(hak_malloc(1));
  uint64_t before = held_bytes(), bytes = (uint64_t)BLOCKS * BLOCK_BYTES;
  uint64_t largest_step = 0;
  for (unsigned index = 0; index < BLOCKS; index++) {
    uint64_t step = held_bytes();
    REQUIRE(blocks[index] = hak_malloc(BLOCK_BYTES));
    step = held_bytes() - step;
    if (step > largest_step) largest_step = step;
  }
  REQUIRE(largest_step == CHUNK_BYTES); /* all that the first touch may make resident */
  REQUIRE(held_bytes() - before >= bytes && held_bytes() - before < bytes + 16 * MIB);
  REQUIRE(os_fake_keeps_huge_pages_out(blocks[0]));
  REQUIRE(!os_fake_keeps_huge_pages_out(blocks[BLOCKS - 1]));
  for (unsigned index = 0; index < BLOCKS; index++)
    if (!lives(index, blocks[index])) hak_free(blocks[index]);
  uint64_t advices = load_relaxed(&os_fake.huge_advices);
  age();
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
  if (lives != none) REQUIRE(load_relaxed(&os_fake.huge_advices) > advices);
  if (lives == none) REQUIRE(held_bytes() < before + MIB);
}

/* A large block has them where it fills 2 MiB; what lies at its ends belongs to others too. */
CHILD_TEST(ends_of_a_big_block) {
  os_fake.are_huge_pages_always = true;
  char *block = hak_malloc(5 * MIB), *small = hak_malloc(100000);
  REQUIRE(!os_fake_keeps_huge_pages_out(block + CHUNK_BYTES));
  REQUIRE(os_fake_keeps_huge_pages_out(block + 5 * MIB - 1));
  REQUIRE(os_fake_keeps_huge_pages_out(small));
  hak_free(block);
  age(); /* … and the next one again */
  block = hak_malloc(5 * MIB);
  REQUIRE(!os_fake_keeps_huge_pages_out(block + CHUNK_BYTES));
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
}

CHILD_TEST(big_blocks) {
  os_fake.are_huge_pages_always = true;
  void *blocks[8], *small[8];
  for (unsigned round = 0; round < 3; round++) {
    for (unsigned index = 0; index < 8; index++) {
      blocks[index] = hak_malloc((3 + 5 * index) * MIB + 12345);
      small[index] = hak_malloc(200000);
    }
    for (unsigned index = 0; index < 8; index += 2) hak_free(blocks[index]);
    age();
    for (unsigned index = 1; index < 8; index += 2) {
      blocks[index] = hak_realloc(blocks[index], (2 + 9 * (round + index) % 40) * MIB);
      REQUIRE(blocks[index]);
    }
    for (unsigned index = 0; index < 8; index++) {
      if (index % 2) hak_free(blocks[index]);
      hak_free(small[index]);
    }
    age();
  }
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
}

static void everything(const void *seed) {
  struct workload load = {.must_succeed = !seed};
  os_fake.are_huge_pages_always = true;
  if (seed) os_fake_fail_at_random(OS_CALLS_ALL, 4, *(const uint64_t *)seed);
  workload_run(&load);
  os_fake_fail_none();
  age();
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
}

CHILD_TEST(other_modes) {
  struct workload load = {.must_succeed = true};
  workload_run(&load);
  age();
  REQUIRE(load_relaxed(&os_fake.huge_advices) == 1); /* unasked, for the first chunk */
}

TEST(superslabs) {
  lives_function *const which[] = {none, one_in_a_gap, whole_slabs};
  for (unsigned index = 0; index < sizeof which / sizeof which[0]; index++)
    assert_child_succeeds(used_in_full, &which[index]);
}

TEST(workload) {
  assert_child_succeeds(everything, NULL);
  for (uint64_t seed = 1; seed <= RANDOM_RUNS; seed++) assert_child_succeeds(everything, &seed);
  printf("tally: %d faults\n", RANDOM_RUNS);
}
