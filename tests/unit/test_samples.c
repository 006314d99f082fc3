/* src/profile/samples.c, and the bounds of profile.c: the table of live samples. */
#include "profile/samples.h"

#include "profiles.h"

BEFORE(child) { start_library(); }

static uint64_t coin = 1;

static uintptr_t address_of(unsigned number) { return 0x7f0000000000 + (uintptr_t)number * 48; }

static bool add(unsigned number) {
  struct profile_sample sample = {.block_bytes = 64, .period_bytes = 1, .site = number};
  int coins = samples_throw_coins(&coin);
  return coins == SAMPLE_THINNED_OUT || samples_add(address_of(number), &sample, coins, &coin);
}

CHILD_TEST(add_and_remove) {
  enum { MANY = 5000 };
  struct profile_sample sample;
  unsigned halvings;
  REQUIRE(!samples_remove(address_of(0), &sample, &halvings));
  for (unsigned number = 0; number < MANY; number++) REQUIRE(add(number));
  REQUIRE(load_relaxed(&profile_state.live_samples) == MANY);
  for (unsigned number = 0; number < MANY; number++) {
    REQUIRE(samples_remove(address_of(number), &sample, &halvings));
    REQUIRE(sample.site == number && halvings == 0);
    REQUIRE(!samples_remove(address_of(number), &sample, &halvings));
  }
  REQUIRE(load_relaxed(&profile_state.live_samples) == 0);
}

/* Beyond what the table may hold: what is left stands for all. */
CHILD_TEST(halve) {
  enum { MANY = 2000000 };
  for (unsigned number = 0; number < MANY; number++) REQUIRE(add(number));
  REQUIRE(load_relaxed(&profile_state.halvings) >= 4 && load_relaxed(&profile_state.halvings) < 8);
  REQUIRE(load_relaxed(&profile_state.table_bytes) <=
          PROFILE_TABLE_BYTES + look().committed_bytes / PROFILE_TABLE_DIVISOR);
  struct estimate live = estimate_live(0);
  REQUIRE(live.samples == load_relaxed(&profile_state.live_samples));
  REQUIRE_NEAR(live.blocks, MANY, 0.03);
  struct profile_sample sample;
  unsigned halvings, found = 0;
  for (unsigned number = 0; number < MANY; number++)
    found += samples_remove(address_of(number), &sample, &halvings);
  REQUIRE(found == live.samples && load_relaxed(&profile_state.live_samples) == 0);
  for (unsigned number = 0; number < MANY / 1000; number++) REQUIRE(add(number));
  for (unsigned number = 0; number < MANY / 1000; number++)
    samples_remove(address_of(number), &sample, &halvings);
  REQUIRE(add(1) &&
          load_relaxed(&profile_state.live_samples) == 1); /* none is thinned out any more */
}

/* No call walks through the table, the one that finds it full neither: as many coins are thrown as
 * there are places for its address. */
CHILD_TEST(halve_in_pieces) {
  enum { MANY = 400000, MOST = SAMPLE_LEVELS * 16 + 8 };
  for (unsigned number = 0; number < MANY; number++) {
    uint64_t live = load_relaxed(&profile_state.live_samples);
    REQUIRE(add(number));
    REQUIRE(live < load_relaxed(&profile_state.live_samples) + MOST);
  }
  REQUIRE(load_relaxed(&profile_state.halvings) > 0);
}

/* Nothing that a thread leaves undone keeps others from halving: one that a fork has cut off, or a
 * child of vfork that was killed. */
CHILD_TEST(halve_beside_one_that_was_cut_off) {
  struct sample_segment *segment;
  REQUIRE(add(0));
  segment = load_relaxed(&profile_state.sample_segments[0]);
  for (unsigned index = 0; index < SEGMENT_SAMPLES; index += BUCKET_SAMPLES)
    if (!load_relaxed(&segment->keys[index])) store_relaxed(&segment->keys[index], SAMPLE_KEY_BUSY);
  for (unsigned number = 1; number < 300000; number++) REQUIRE(add(number));
  REQUIRE(load_relaxed(&profile_state.halvings) > 0);
  REQUIRE(load_relaxed(&profile_state.lost_samples) == 0);
}

static uint64_t segment_bytes(void) {
  uint64_t bytes = 0;
  for (unsigned number = 0; number < SAMPLE_SEGMENTS; number++)
    if (load_relaxed(&profile_state.sample_segments[number]))
      bytes += sizeof(struct sample_segment);
  return bytes;
}

/* What was refused is not counted, and asked for again later. */
CHILD_TEST(go_on_with_memory) {
  os_fake_fail(OS_CALLS_ALL, 1, UINT64_MAX);
  for (unsigned number = 0; number < 50000; number++) add(number);
  uint64_t bytes = segment_bytes();
  REQUIRE(load_relaxed(&profile_state.table_bytes) == bytes);
  os_fake_fail_none();
  os_fake_advance_ms(1000);
  for (unsigned number = 50000; number < 100000; number++) add(number);
  REQUIRE(segment_bytes() > bytes);
  REQUIRE(load_relaxed(&profile_state.table_bytes) == segment_bytes());
}

CHILD_TEST(do_without_memory) {
  os_fake_fail(OS_CALLS_ALL, 1, UINT64_MAX);
  unsigned kept = 0;
  for (unsigned number = 0; number < 300000; number++) kept += add(number);
  REQUIRE(kept == 0 || load_relaxed(&profile_state.live_samples) > 0);
}
