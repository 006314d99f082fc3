#include "guard/guard_sampler.h"

#include "base/bits.h"
#include "config/options.h"
#include "guard/guarded.h"

/* 1 to 2 * rate - 1, all equally likely: the mean is `rate`. */
static uint64_t next_distance(struct guard_sampler *sampler) {
  return 1 + (random_next(&sampler->random) >> 16) % (2 * options.guard_rate - 1);
}

/* No sample before that time: bounds the cost for a program whose requests miss all the time. */
static ATOMIC(uint64_t) next_sample_ms;

/* The gap doubles for each tenth of the slots in use: blocks that are never freed would soon hold
 * them all. A rate below the default asks for more guarded blocks than that. */
enum { GAP_MS = 10, GAP_RATE_MIN = 100 };

static bool gap_has_passed(void) {
  if (options.guard_rate < GAP_RATE_MIN) return true;
  uint64_t now_ms = os_now_coarse_ms(), next_ms = load_relaxed(&next_sample_ms);
  uint64_t gap_ms = (uint64_t)GAP_MS << guarded_tenths_used();
  /* acq_rel: orders nothing; one of several threads goes on. */
  return now_ms >= next_ms && cas_strong_acq_rel(&next_sample_ms, &next_ms, now_ms + gap_ms);
}

bool guard_sampler_chooses(struct guard_sampler *sampler) {
  if (UNLIKELY(!sampler->random)) {
    sampler->random = os_random() | 1;
    sampler->countdown = next_distance(sampler);
  }
  if (LIKELY(--sampler->countdown)) return false;
  bool is_now = gap_has_passed();
  sampler->countdown = is_now ? next_distance(sampler) : 1;
  return is_now;
}

bool guard_sampler_draws_end(struct guard_sampler *sampler) {
  return random_next(&sampler->random) >> 63;
}
