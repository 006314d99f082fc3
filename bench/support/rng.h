/* SPDX-License-Identifier: MIT
 *
 * rng.h: the random numbers of the benchmarks: xorshift64*, small, inlined, the same on every
 * machine.  Every stream is seeded from constants, so that each allocator sees the same requests.
 */
#ifndef BENCH_RNG_H
#define BENCH_RNG_H

#include <stdint.h>

struct rng {
  uint64_t state; /* never 0 */
};

/* Streams of different `stream` numbers are unrelated: the seed is spread by a multiplication with
 * the golden ratio, and made odd so that it cannot be 0. */
static inline struct rng rng_seed(uint64_t stream) {
  return (struct rng){.state = ((stream + 1) * 0x9E3779B97F4A7C15u) | 1u};
}

static inline uint64_t rng_next(struct rng *rng) {
  rng->state ^= rng->state >> 12;
  rng->state ^= rng->state << 25;
  rng->state ^= rng->state >> 27;
  return rng->state * 0x2545F4914F6CDD1Du;
}

/* A number from 0 to limit - 1, limit < 2^32.  Multiply and shift: a division would cost as much as
 * a fast malloc. */
static inline uint64_t rng_below(struct rng *rng, uint64_t limit) {
  return ((rng_next(rng) >> 32) * limit) >> 32;
}

/* A number from minimum to maximum, both included. */
static inline uint64_t rng_between(struct rng *rng, uint64_t minimum, uint64_t maximum) {
  return minimum + rng_below(rng, maximum - minimum + 1);
}

/* A number of minimum .. 2 * minimum - 1 times 2^doublings, never above the maximum. */
static inline uint64_t rng_doubled(struct rng *rng, uint64_t minimum, uint64_t maximum,
                                   unsigned doublings) {
  uint64_t low = minimum << doublings, number = low + rng_below(rng, low);
  return number < maximum ? number : maximum;
}

/* How often `minimum` can be doubled below `maximum`; at least once, so that there is a choice. */
static inline unsigned rng_doublings(uint64_t minimum, uint64_t maximum) {
  uint64_t ratio = (maximum - 1) / minimum;
  return ratio < 2 ? 1 : 64 - (unsigned)__builtin_clzll(ratio);
}

/* From minimum (at least 1) to maximum, every doubling as likely as the next: as many numbers from
 * 1K to 2K as from 1M to 2M.  The power law with exponent 1. */
static inline uint64_t rng_log_between(struct rng *rng, uint64_t minimum, uint64_t maximum) {
  unsigned doublings = (unsigned)rng_below(rng, rng_doublings(minimum, maximum));
  return rng_doubled(rng, minimum, maximum, doublings);
}

/* From minimum (at least 1) to maximum, every doubling half as likely as the one before, so that
 * each has the same share of the sum: many small blocks, few large ones.  The power law with
 * exponent 2. */
static inline uint64_t rng_steep_between(struct rng *rng, uint64_t minimum, uint64_t maximum) {
  unsigned last = rng_doublings(minimum, maximum) - 1;
  unsigned doublings = (unsigned)__builtin_ctzll(rng_next(rng) | UINT64_C(1) << last);
  return rng_doubled(rng, minimum, maximum, doublings);
}

#endif
