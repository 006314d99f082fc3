/* src/pool/slab_purge: rounds that end after so many calls and go on there, and ages. */
#include "pool/slab_pool.h"

#include "child.h"
#include "fake/os_fake.h"
#include "slab/record.h"

enum { CLASS_32K = 40, RUNS = SLOTS_PER_SUPERSLAB / 4, SUPERSLABS = 40 };

static struct counters counters;
static struct slab *slabs[SUPERSLABS * RUNS];

static void make_slabs(void) {
  REQUIRE(window_init(UINT64_C(64) << 30));
  superslabs_kept_max = SUPERSLABS;
  for (unsigned index = 0; index < SUPERSLABS * RUNS; index++)
    REQUIRE(slabs[index] = acquire_slab(CLASS_32K, POOL_ALL, &counters));
}

/* One slab of each SuperSlab stays unless they are to be `whole`. */
static void use_and_release(bool whole) {
  make_slabs();
  for (unsigned index = 0; index < SUPERSLABS * RUNS; index++)
    if (whole || index % RUNS) release_slab(slabs[index], 0, &counters);
}

static uint64_t purge_calls(void) { return load_relaxed(&os_fake.calls[OS_CALL_PURGE]); }

static struct purge bounded_round(uint32_t decay_ms) {
  return (struct purge){
      .now_ms = (uint32_t)os_now_coarse_ms(), .decay_ms = decay_ms, .calls_left = 4};
}

/* Each round does its calls, says that there is more, and goes on where the last one ended. */
CHILD_TESTS(rounds_go_on, bool, whole, true, false) {
  use_and_release(whole);
  os_fake_advance_ms(1000);
  unsigned rounds = 0;
  for (bool is_cut = true; is_cut; rounds++) {
    uint64_t before = purge_calls();
    struct purge round = bounded_round(1000);
    slab_pool_purge(&round);
    REQUIRE(purge_calls() - before <= 4 && rounds <= SUPERSLABS);
    REQUIRE(!round.is_cut || (round.work_remains && purge_calls() - before == 4));
    is_cut = round.is_cut;
  }
  unsigned calls_each = whole ? 2 : 1; /* its record's bitmaps, too */
  REQUIRE(rounds >= SUPERSLABS / 4 && purge_calls() == calls_each * SUPERSLABS);
  struct slab_pool_sizes sizes;
  slab_pool_measure(&sizes);
  REQUIRE(sizes.dirty_bytes == 0);
}

/* What is young in one part of a pass is not forgotten at the end of its last part. */
CHILD_TEST(young_ones_remain) {
  enum { HIGHEST = (SUPERSLABS - 1) * RUNS };
  make_slabs();
  for (unsigned index = 0; index < HIGHEST; index++) release_slab(slabs[index], 0, &counters);
  os_fake_advance_ms(1000);
  for (unsigned index = HIGHEST; index < SUPERSLABS * RUNS; index++)
    release_slab(slabs[index], 0, &counters);
  struct purge round = {.is_cut = true};
  for (unsigned rounds = 0; round.is_cut && rounds <= 2 * SUPERSLABS; rounds++) {
    round = bounded_round(1000);
    slab_pool_purge(&round);
  }
  REQUIRE(!round.is_cut && round.work_remains);
}

/* The round began before they were freed. */
CHILD_TEST(freed_during_a_round) {
  struct purge round = {.calls_left = SIZE_MAX, .decay_ms = 1000};
  round.now_ms = (uint32_t)os_now_coarse_ms();
  os_fake_advance_ms(10);
  use_and_release(true);
  slab_pool_purge(&round);
  REQUIRE(purge_calls() == 0 && round.work_remains && !round.is_cut);
}
