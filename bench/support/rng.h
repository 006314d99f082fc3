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

#endif
