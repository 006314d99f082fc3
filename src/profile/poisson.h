/* poisson.h: a Poisson process along the bytes that are allocated, and what one of its samples
 * stands for.
 *
 * The two functions of libm that it needs are here: libhakmem.so depends on the C library and its
 * threads alone.  Both are right to 1e-12 of their value (tests/unit/test_poisson.c). */
#ifndef HAK_PROFILE_POISSON_H
#define HAK_PROFILE_POISSON_H

#include "base/compiler.h"

/* The natural logarithm of a number above 0. */
double natural_log(double number);
/* 1 − e^(−x), of x >= 0, exact near 0 too. */
double one_minus_exp(double x);

/* Bytes up to and including the next sampled one, R on average: block sizes are counted off, and
 * the block that holds that byte is a sample. `random` is not 0, and is advanced. */
int64_t poisson_distance(uint64_t period_bytes, uint64_t *random);
#define POISSON_DISTANCE_MAX ((int64_t)1 << 61)

/* The probability that a block of S bytes is a sample, of period R. */
double poisson_probability(uint64_t block_bytes, uint64_t period_bytes);

#endif
