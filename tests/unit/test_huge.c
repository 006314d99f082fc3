/* map/huge.h where the kernel gives huge pages unasked or when asked: a part of one is never given
 * back without telling the kernel, which would bring it back; what may have them is counted as a
 * whole; elsewhere nothing is asked. */
#include "map/huge.h"

#include "base/counters.h"
#include "cache/heap.h"
#include "config/options.h"
#include "pool/slab_pool.h"
#include "unit.h"
#include "workload.h"

enum { BLOCK_BYTES = 1000, BLOCKS = 120000, GAP = 40, RANDOM_RUNS = 16 };
#define MIB ((size_t)1 << 20)

/* Without a helper thread, to which huge pages would be left. */
static void start_alone(enum os_huge_mode mode) {
  os_fake.huge_mode = mode;
  os_fake.is_multi_threaded = false;
}

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

struct use {
  enum os_huge_mode mode;
  lives_function *lives;
  uint64_t seed;
};

static void *table[BLOCKS];

static void fill_between(unsigned first, unsigned end) {
  for (unsigned index = first; index < end; index++)
    REQUIRE(table[index] = hak_malloc(BLOCK_BYTES));
}
static void fill(void) { fill_between(0, BLOCKS); }

static void empty(lives_function *lives) {
  for (unsigned index = 0; index < BLOCKS; index++)
    if (!lives(index, table[index])) hak_free(table[index]);
  age();
}

/* Enough for SuperSlabs with huge pages; the first ones of a process have none. */
static void used_in_full(const void *argument) {
  const struct use *use = argument;
  start_alone(use->mode);
  hak_free(hak_malloc(1));
  uint64_t before = held_bytes(), bytes = (uint64_t)BLOCKS * BLOCK_BYTES;
  uint64_t largest_step = 0;
  for (unsigned index = 0; index < BLOCKS; index++) {
    uint64_t step = held_bytes();
    REQUIRE(table[index] = hak_malloc(BLOCK_BYTES));
    step = held_bytes() - step;
    if (step > largest_step) largest_step = step;
  }
  REQUIRE(largest_step == CHUNK_BYTES); /* all that the first touch makes resident */
  REQUIRE(held_bytes() - before >= bytes && held_bytes() - before < bytes + 16 * MIB);
  REQUIRE(!os_fake_may_be_huge(table[0]));
  REQUIRE(os_fake_may_be_huge(table[BLOCKS - 1]));
  uint64_t advices = load_relaxed(&os_fake.huge_advices);
  empty(use->lives);
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
  if (use->lives != none) REQUIRE(load_relaxed(&os_fake.huge_advices) > advices);
  if (use->lives == none) REQUIRE(held_bytes() < before + MIB);
}

static unsigned huge_blocks(unsigned first, unsigned end) {
  unsigned count = 0;
  for (unsigned index = first; index < end; index++) count += os_fake_may_be_huge(table[index]);
  return count;
}

/* A heap that grows again has them again, also where it had given back parts of them; how often
 * does not count. */
CHILD_TESTS(grows_again, enum os_huge_mode, mode, OS_HUGE_ALWAYS, OS_HUGE_ON_REQUEST) {
  start_alone(mode);
  fill();
  unsigned at_first = huge_blocks(0, BLOCKS);
  REQUIRE(at_first > BLOCKS / 3);
  for (unsigned round = 0; round < 3; round++) {
    empty(one_in_a_gap);
    for (unsigned index = 0; index < BLOCKS; index += GAP) hak_free(table[index]);
    hak_purge(true); /* with all addresses */
    fill();
    REQUIRE(huge_blocks(0, BLOCKS) > at_first / 2);
    REQUIRE(load_relaxed(&huge.divisions) <= 2 * BLOCKS * (uint64_t)BLOCK_BYTES / CHUNK_BYTES + 2);
  }
}

/* After one that took longer than small pages would the heap goes on without, for a while. */
CHILD_TEST(slow_ones) {
  char *environment[] = {"HAKMEM_DECAY_MS=86400000", NULL};
  enum { SLOW = BLOCKS / 4 * 3, PER_CHUNK = CHUNK_BYTES / BLOCK_BYTES };
  start_alone(OS_HUGE_ON_REQUEST);
  options_read(environment);
  os_fake.ns_a_reading = 2000000;
  fill_between(0, SLOW);
  unsigned met = huge_blocks(0, SLOW);
  REQUIRE(met > 0 && met <= 4 * PER_CHUNK);
  os_fake.ns_a_reading = 0;
  os_fake_advance_ms(1000);
  fill_between(SLOW, BLOCKS);
  REQUIRE(huge_blocks(SLOW, BLOCKS) >= BLOCKS - SLOW - PER_CHUNK);
}

/* Beside a helper thread no call touches one: it has small pages, until the helper has made the
 * next chunk. */
CHILD_TEST(left_to_the_helper) {
  enum { ALONE = BLOCKS / 4 * 3, UNTIL = BLOCKS / 8 * 7, PER_CHUNK = CHUNK_BYTES / BLOCK_BYTES };
  start_alone(OS_HUGE_ON_REQUEST);
  fill_between(0, ALONE);
  REQUIRE(!load_relaxed(&superslab_is_wanted));
  store_relaxed(&purge_has_helper, true);
  fill_between(ALONE, UNTIL);
  REQUIRE(huge_blocks(ALONE, UNTIL) <= PER_CHUNK); /* the rest of one */
  for (unsigned from = UNTIL; from < UNTIL + 3 * PER_CHUNK; from += PER_CHUNK) {
    REQUIRE(load_relaxed(&superslab_is_wanted));
    slab_pool_make_ahead(&stray_counters);
    REQUIRE(!load_relaxed(&superslab_is_wanted));
    fill_between(from, from + PER_CHUNK); /* its first block asks for the next */
  }
  REQUIRE(huge_blocks(UNTIL, UNTIL + 3 * PER_CHUNK) > PER_CHUNK);
}

/* Where the program does not touch all of its memory the heap has small pages. */
CHILD_TEST(untouched_ones) {
  enum { SPARSE = BLOCKS / 4 * 3 };
  start_alone(OS_HUGE_ON_REQUEST);
  os_fake.untouched_parts = 16;
  fill_between(0, SPARSE);
  REQUIRE(huge_blocks(0, SPARSE) == 0);
  os_fake.untouched_parts = 0;
  fill_between(SPARSE, BLOCKS);
  REQUIRE(huge_blocks(SPARSE, BLOCKS) > (BLOCKS - SPARSE) / 2);
}

CHILD_TESTS(switched_off, enum os_huge_mode, mode, OS_HUGE_ALWAYS, OS_HUGE_ON_REQUEST) {
  char *environment[] = {"HAKMEM_THP=0", NULL};
  struct workload load = {.must_succeed = true};
  os_fake.huge_mode = mode;
  options_read(environment);
  workload_run(&load);
  fill();
  REQUIRE(huge_blocks(0, BLOCKS) == 0);
  char *block = hak_malloc(5 * MIB);
  REQUIRE(!os_fake_may_be_huge(block + CHUNK_BYTES));
}

/* A large block has them where it fills 2 MiB; what lies at its ends belongs to others too. */
CHILD_TEST(ends_of_a_big_block) {
  os_fake.huge_mode = OS_HUGE_ALWAYS;
  char *block = hak_malloc(5 * MIB), *small = hak_malloc(100000);
  REQUIRE(os_fake_may_be_huge(block + CHUNK_BYTES));
  REQUIRE(!os_fake_may_be_huge(block + 5 * MIB - 1));
  REQUIRE(!os_fake_may_be_huge(small));
  hak_free(block);
  age(); /* … and the next one again */
  block = hak_malloc(5 * MIB);
  REQUIRE(os_fake_may_be_huge(block + CHUNK_BYTES));
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
}

CHILD_TEST(big_blocks) {
  os_fake.huge_mode = OS_HUGE_ALWAYS;
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

static void everything(const void *argument) {
  const struct use *use = argument;
  struct workload load = {.must_succeed = !use->seed};
  os_fake.huge_mode = use->mode;
  if (use->seed) os_fake_fail_at_random(OS_CALLS_ALL, 4, use->seed);
  workload_run(&load);
  os_fake_fail_none();
  age();
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
}

CHILD_TEST(mode_never) {
  struct workload load = {.must_succeed = true};
  workload_run(&load);
  age();
  REQUIRE(load_relaxed(&os_fake.huge_advices) == 1); /* unasked, for the first chunk */
}

static const enum os_huge_mode modes[] = {OS_HUGE_ALWAYS, OS_HUGE_ON_REQUEST};
enum { MODES = sizeof modes / sizeof modes[0] };

TEST(superslabs) {
  lives_function *const which[] = {none, one_in_a_gap, whole_slabs};
  for (unsigned mode = 0; mode < MODES; mode++)
    for (unsigned index = 0; index < sizeof which / sizeof which[0]; index++)
      assert_child_succeeds(used_in_full, &(struct use){modes[mode], which[index], 0});
}

TEST(workload) {
  for (unsigned mode = 0; mode < MODES; mode++)
    for (uint64_t seed = 0; seed <= RANDOM_RUNS; seed++)
      assert_child_succeeds(everything, &(struct use){modes[mode], none, seed});
  printf("tally: %d faults\n", MODES * RANDOM_RUNS);
}
