/* unit.h: what every unit test includes: cmocka and the headers it wants before it. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A small generator with a seed, so that every run is the same (G. Marsaglia, xorshift, 2003). */
static inline uint64_t random_next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static inline size_t random_below(uint64_t *state, size_t bound) {
  return (size_t)(random_next(state) >> 11) % bound;
}

#endif
