/* random.h: xorshift64*, seeded, so that every run of a test takes the same turns per thread. */
#ifndef TESTS_API_RANDOM_H
#define TESTS_API_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * 0x2545f4914f6cdd1dull;
}

static inline uint64_t random_seed(uint64_t seed) { return (seed + 1) * 0x9e3779b97f4a7c15ull | 1; }

/* A number from 0 to limit - 1. */
static inline size_t random_below(uint64_t *state, size_t limit) {
  return (size_t)(random_next(state) >> 11) % limit;
}

static inline size_t random_between(uint64_t *state, size_t low, size_t high) {
  return low + random_below(state, high - low + 1);
}

#endif
