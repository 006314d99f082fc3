/* SPDX-License-Identifier: MIT
 *
 * histogram.c: see histogram.h.
 */
#include "histogram.h"

void histogram_merge(struct histogram *into, const struct histogram *other) {
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
    into->seen[i] += other->seen[i];
  }
  into->count += other->count;
  into->sum += other->sum;
  into->most = other->most > into->most ? other->most : into->most;
}

/* The greatest number of a bucket. */
static uint64_t bucket_end(unsigned bucket) {
  enum { WIDTH_ONE = 2 << HISTOGRAM_SHIFT };
  if (bucket < WIDTH_ONE) {
    return bucket;
  }
  unsigned shift = (bucket >> HISTOGRAM_SHIFT) - 1;
  uint64_t leading = bucket - (shift << HISTOGRAM_SHIFT);
  return ((leading + 1) << shift) - 1;
}

uint64_t histogram_quantile(const struct histogram *histogram, double part) {
  uint64_t wanted = (uint64_t)(part * (double)histogram->count), seen = 0;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
    seen += histogram->seen[i];
    if (seen > wanted || seen == histogram->count) {
      return bucket_end(i) < histogram->most ? bucket_end(i) : histogram->most;
    }
  }
  return histogram->most;
}
