/* unit.h: what every unit test includes: cmocka and the headers it wants before it. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"

/* The seed is the test's, so that every run is the same. */
static inline size_t random_below(uint64_t *state, size_t bound) {
  return (size_t)(random_next(state) >> 11) % bound;
}

#endif
