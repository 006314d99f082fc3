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

/* Enough for SuperSlabs with huge pages. */
static int used_in_full(const void *keeps_some) {
  static void *blocks[BLOCKS];
  os_fake.are_huge_pages_always = true;
  hak_free(hak_malloc(1));
  uint64_t before = held_bytes();
  for (unsigned index = 0; index < BLOCKS; index++)
    REQUIRE(blocks[index] = hak_malloc(BLOCK_BYTES));
  uint64_t full = held_bytes() - before;
  REQUIRE(full >= (uint64_t)BLOCKS * BLOCK_BYTES &&
          full < (uint64_t)BLOCKS * BLOCK_BYTES + 16 * MIB);
  for (unsigned index = 0; index < BLOCKS; index++)
    if (!keeps_some || index % GAP) hak_free(blocks[index]);
  uint64_t advices = load_relaxed(&os_fake.huge_advices);
  age();
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
  if (keeps_some) REQUIRE(load_relaxed(&os_fake.huge_advices) > advices);
  if (!keeps_some) REQUIRE(held_bytes() < before + MIB);
  return 0;
}

static int big_blocks(const void *unused) {
  (void)unused;
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
  return 0;
}

static int everything(const void *seed) {
  struct workload load = {.must_succeed = !seed};
  os_fake.are_huge_pages_always = true;
  if (seed) os_fake_fail_at_random(OS_CALLS_ALL, 4, *(const uint64_t *)seed);
  workload_run(&load);
  os_fake_fail_none();
  age();
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
  return 0;
}

static int nothing_is_asked(const void *unused) {
  struct workload load = {.must_succeed = true};
  (void)unused;
  workload_run(&load);
  age();
  REQUIRE(load_relaxed(&os_fake.huge_advices) == 0);
  return 0;
}

static void succeeds(int (*function)(const void *), const void *argument) {
  struct child child = child_run(function, argument);
  if (child_exit_status(&child) != 0) fail_msg("%s", child.said);
}

static void test_superslabs(void **state) {
  succeeds(used_in_full, NULL);
  succeeds(used_in_full, state);
}

static void test_big_blocks(void **state) {
  (void)state;
  succeeds(big_blocks, NULL);
}

static void test_workload(void **state) {
  (void)state;
  succeeds(everything, NULL);
  for (uint64_t seed = 1; seed <= RANDOM_RUNS; seed++) succeeds(everything, &seed);
  printf("tally: %d faults\n", RANDOM_RUNS);
}

static void test_other_modes(void **state) {
  (void)state;
  succeeds(nothing_is_asked, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_superslabs),
      cmocka_unit_test(test_big_blocks),
      cmocka_unit_test(test_workload),
      cmocka_unit_test(test_other_modes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
