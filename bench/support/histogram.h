/* SPDX-License-Identifier: MIT
 *
 * histogram.h: how often which number was seen, with a relative error of at most 1/32: buckets of
 * width 1 up to 64, and from there 32 equal ones for each doubling.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
  HISTOGRAM_SHIFT = 5, /* 2^5 buckets a doubling */
  HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SHIFT + 1) << HISTOGRAM_SHIFT
};

/* All zero when empty. */
struct histogram {
  uint64_t seen[HISTOGRAM_BUCKETS];
  uint64_t count, sum, most;
};

static inline unsigned histogram_bucket(uint64_t number) {
  unsigned bits = 64 - (unsigned)__builtin_clzll(number | 1);
  unsigned shift = bits > HISTOGRAM_SHIFT + 1 ? bits - HISTOGRAM_SHIFT - 1 : 0;
  return (shift << HISTOGRAM_SHIFT) + (unsigned)(number >> shift);
}

static inline void histogram_add(struct histogram *histogram, uint64_t number) {
  histogram->seen[histogram_bucket(number)]++;
  histogram->count++;
  histogram->sum += number;
  histogram->most = number > histogram->most ? number : histogram->most;
}

void histogram_merge(struct histogram *into, const struct histogram *other);

/* The number that a part of all (0.99 for the 99th percentile) does not exceed; the upper end of
 * its bucket. */
uint64_t histogram_quantile(const struct histogram *histogram, double part);

#endif
