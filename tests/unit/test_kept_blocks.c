/* src/profile: a block that realloc leaves where it is stays a sample, of what is asked for now. */
#include "profile/recording.h"

#include "profiles.h"

enum { BLOCKS = 3000 };
#define PERIOD UINT64_C(64)

static void *blocks[BLOCKS];

static void start(bool is_hardened) {
  if (is_hardened) be_hardened(1);
  start_library();
  switch_on(PERIOD);
}

/* Of all samples; false when there is one of another request. */
static bool are_of(size_t requested_bytes, unsigned *samples, double *sum) {
  *samples = 0;
  *sum = 0;
  for (unsigned number = 0; number < SAMPLE_SEGMENTS; number++) {
    struct sample_segment *segment = load_relaxed(&profile_state.sample_segments[number]);
    for (unsigned at = 0; segment && at < SEGMENT_SAMPLES; at++) {
      uint64_t key = load_relaxed(&segment->keys[at]);
      const struct profile_sample *sample = &segment->samples[at];
      if (key <= SAMPLE_KEY_BUSY) continue;
      if (sample->requested_bytes != requested_bytes) return false;
      *sum +=
          (double)requested_bytes / poisson_probability(sample->block_bytes, sample->period_bytes);
      ++*samples;
    }
  }
  return true;
}

static double live_requested_of_sites(void) {
  double sum = 0;
  for (uint32_t site = 0; site < load_relaxed(&profile_state.site_count); site++) {
    const struct profile_site *record = sites_record(site);
    sum += real_of_bits(load_relaxed(&record->allocated.requested)) -
           real_of_bits(load_relaxed(&record->freed.requested));
  }
  return sum;
}

static void require_all_of(size_t bytes, unsigned expected) {
  unsigned samples;
  double sum;
  REQUIRE(are_of(bytes, &samples, &sum));
  REQUIRE(samples == expected);
  REQUIRE_NEAR(live_requested_of_sites(), sum, 1e-9);
}

/* From one size to another of the same class, and back. */
static void resize_all(size_t first, size_t second) {
  for (unsigned at = 0; at < BLOCKS; at++) blocks[at] = must_malloc(first);
  unsigned samples = (unsigned)load_relaxed(&profile_state.live_samples);
  REQUIRE(samples > BLOCKS / 10);
  require_all_of(first, samples);
  for (unsigned at = 0; at < BLOCKS; at++) REQUIRE(hak_realloc(blocks[at], second) == blocks[at]);
  require_all_of(second, samples);
  for (unsigned at = 0; at < BLOCKS; at++) REQUIRE(hak_realloc(blocks[at], first) == blocks[at]);
  require_all_of(first, samples);
  for (unsigned at = 0; at < BLOCKS; at++) hak_free(blocks[at]);
  REQUIRE(!load_relaxed(&profile_state.live_samples));
}

CHILD_TEST(resize_in_slabs) {
  start(false);
  resize_all(90, 96);
}

CHILD_TEST(resize_in_slabs_hardened) {
  start(true);
  resize_all(90, 82);
}

/* Large and Big ones, each a sample. */
CHILD_TESTS(resize_ranges, bool, is_hardened, false, true) {
  static const size_t sizes[][2] = {{130000, 120000}, {3000000, 2999000}};
  start(is_hardened);
  for (unsigned at = 0; at < 2; at++) {
    void *block = must_malloc(sizes[at][0]);
    require_all_of(sizes[at][0], 1);
    block = hak_realloc(block, sizes[at][1]);
    require_all_of(sizes[at][1], 1);
    hak_free(block);
    REQUIRE(!load_relaxed(&profile_state.live_samples));
  }
}
