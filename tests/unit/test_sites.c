/* src/profile/sites.c */
#include "profile/sites.h"

#include "profiles.h"

BEFORE(child) { start_library(); }
enum { DEPTH = 30 };

static uint32_t find(unsigned number, size_t depth) {
  uintptr_t frames[PROFILE_DEPTH_MAX];
  for (size_t at = 0; at < depth; at++) frames[at] = 0x400000 + number * (at + 1);
  return sites_find(frames, depth, number % 2);
}

CHILD_TEST(find_again) {
  enum { STACKS = 4000 };
  static uint32_t found[STACKS];
  for (unsigned number = 0; number < STACKS; number++) {
    found[number] = find(number, number % DEPTH);
    REQUIRE(found[number] != SITE_LOST);
  }
  for (unsigned number = 0; number < STACKS; number++) {
    const struct profile_site *site = sites_record(found[number]);
    REQUIRE(find(number, number % DEPTH) == found[number]);
    REQUIRE(load_relaxed(&site->frame_count) == number % DEPTH);
    REQUIRE(site->is_complete == number % 2);
    for (unsigned at = 0; at < number % DEPTH; at++)
      REQUIRE(site->frames[at] == 0x400000 + number * (at + 1));
  }
}

/* The bound is kept, and what finds no room is counted at one site. */
CHILD_TEST(lose_some) {
  enum { STACKS = 200000 };
  unsigned lost = 0;
  for (unsigned number = 0; number < STACKS; number++) lost += find(number, DEPTH) == SITE_LOST;
  REQUIRE(lost > 0 && lost == load_relaxed(&profile_state.lost_stacks));
  REQUIRE(load_relaxed(&profile_state.table_bytes) <=
          PROFILE_TABLE_BYTES + look().committed_bytes / PROFILE_TABLE_DIVISOR);
  REQUIRE(STACKS - lost >= 5000);
  struct profile_sample sample = {.block_bytes = 64, .period_bytes = 64, .site = SITE_LOST};
  sites_note_allocated(&sample);
  REQUIRE(real_of_bits(load_relaxed(&sites_record(SITE_LOST)->allocated.bytes)) > 64);
}

CHILD_TEST(sum_weights) {
  struct profile_sample sample = {
      .block_bytes = 1000, .requested_bytes = 900, .period_bytes = 1000};
  sample.site = find(1, 2);
  struct profile_site *site = sites_record(sample.site);
  double p = poisson_probability(1000, 1000);
  sites_note_allocated(&sample);
  sites_note_allocated(&sample);
  REQUIRE_NEAR(real_of_bits(load_relaxed(&site->allocated.bytes)), 2 * 1000 / p, 1e-12);
  REQUIRE_NEAR(real_of_bits(load_relaxed(&site->allocated.requested)), 2 * 900 / p, 1e-12);
  REQUIRE_NEAR(real_of_bits(load_relaxed(&site->allocated.blocks)), 2 / p, 1e-12);
  REQUIRE_NEAR(real_of_bits(load_relaxed(&site->allocated.variance)), 2 * 1e6 / p / p * (1 - p),
               1e-12);
  sites_note_freed(&sample, 3, 0);
  sites_note_freed(&sample, 0, 5000000);
  sites_note_freed(&sample, 0, UINT64_MAX);
  REQUIRE_NEAR(real_of_bits(load_relaxed(&site->freed.bytes)), 10 * 1000 / p, 1e-12);
  REQUIRE(load_relaxed(&site->freed_samples) == 3);
  REQUIRE(load_relaxed(&site->lifetimes[0]) == 1 && load_relaxed(&site->lifetimes[3]) == 1);
  REQUIRE(load_relaxed(&site->lifetimes[SITE_LIFETIMES - 1]) == 1);
}
