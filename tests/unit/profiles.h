/* profiles.h: a profile switched on and off as a tool does it, and what its tables say. */
#ifndef PROFILES_H
#define PROFILES_H

#include "cache/heap.h"
#include "heaps.h"
#include "profile/poisson.h"
#include "profile/sites.h"

static inline void publish(void) {
  profile_control.parts.generation = (uint8_t)(profile_control.parts.generation % 255 + 1);
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    heap_of_owner(owner)->poke = HEAP_POKE;
}

static inline void switch_on(uint64_t period_bytes) {
  store_relaxed(&profile_control.period_bytes, period_bytes);
  store_relaxed(&profile_control.flags, PROFILE_ON);
  publish();
}

static inline void switch_off(void) {
  store_relaxed(&profile_control.flags, 0);
  publish();
}

/* Blocks of the class that were handed out while a profile was on. */
static inline uint64_t profiled(unsigned class) {
  uint64_t blocks = 0;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    const struct heap *heap = heap_of_owner(owner);
    const struct class_counters *counters = load_relaxed(&heap->class_counters);
    if (counters) blocks += load_relaxed(&counters[class].profiled_blocks);
    if (class < SLAB_CLASS_COUNT) blocks -= heap->magazines[class].passes;
  }
  return blocks;
}

/* Sums over live samples of blocks of so many bytes (0: of all): what they stand for. */
struct estimate {
  double bytes, blocks;
  unsigned samples;
};
static inline struct estimate estimate_live(uint64_t block_bytes) {
  struct estimate sum = {0};
  for (unsigned number = 0; number < SAMPLE_SEGMENTS; number++) {
    struct sample_segment *segment = load_relaxed(&profile_state.sample_segments[number]);
    for (unsigned at = 0; segment && at < SEGMENT_SAMPLES; at++) {
      uint64_t key = load_relaxed(&segment->keys[at]);
      const struct profile_sample *sample = &segment->samples[at];
      if (key <= SAMPLE_KEY_BUSY || (block_bytes && sample->block_bytes != block_bytes)) continue;
      double weight = (double)(UINT64_C(1) << (key >> SAMPLE_HALVINGS_SHIFT)) /
                      poisson_probability(sample->block_bytes, sample->period_bytes);
      sum.bytes += weight * (double)sample->block_bytes;
      sum.blocks += weight;
      sum.samples++;
    }
  }
  return sum;
}

/* Sums over all sites. */
static inline struct estimate estimate_sites(bool of_freed) {
  struct estimate sum = {0};
  for (uint32_t site = 0; site < load_relaxed(&profile_state.site_count); site++) {
    struct profile_site *record = sites_record(site);
    struct profile_weights *weights = of_freed ? &record->freed : &record->allocated;
    sum.bytes += real_of_bits(load_relaxed(&weights->bytes));
    sum.blocks += real_of_bits(load_relaxed(&weights->blocks));
  }
  return sum;
}

#define REQUIRE_NEAR(found, expected, share)                                         \
  do {                                                                               \
    double found_ = (found), expected_ = (expected);                                 \
    if (found_ > expected_ * (1 + (share)) || found_ < expected_ * (1 - (share))) {  \
      fprintf(stderr, "%s:%d: %g, not %g\n", __FILE__, __LINE__, found_, expected_); \
      abort();                                                                       \
    }                                                                                \
  } while (0)

#endif
