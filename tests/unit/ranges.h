/* ranges.h: ranges in a window of their own, for tests of the caches over them. */
#ifndef RANGES_H
#define RANGES_H

#include "child.h"
#include "fake/os_fake.h"
#include "large/range_cache.h"
#include "map/metadata.h"
#include "map/window.h"
#include "pool/range.h"

/* The class of the ranges in these tests, and its size. */
enum { CLASS = SLAB_CLASS_COUNT, GRANULES = 2 };

static struct counters counters;

static inline void set_up(void) {
  REQUIRE(window_init(UINT64_C(64) << 30) && metadata_allocate(1));
}

/* A range of fresh memory, as of now, that was asked for at site. */
static inline size_t fresh_of(size_t granules, uint32_t site) {
  size_t granule = range_take_fresh(&(struct range_request){granules, 1, 0, 0}, &counters);
  REQUIRE(granule != NO_GRANULE);
  range_info(granule)->stamp_ms = (uint32_t)os_now_coarse_ms();
  range_info(granule)->site = site;
  return granule;
}
static inline size_t fresh(uint32_t site) { return fresh_of(GRANULES, site); }

/* From the cache of all threads. */
static inline size_t take(unsigned class, uint32_t site) {
  size_t granule;
  const struct range_wish wish = {.class = class, .site = site};
  return range_cache_take(&wish, &granule, 1, &counters) ? granule : NO_GRANULE;
}

static inline uint64_t dirty_granules(void) {
  struct range_sizes sizes;
  range_measure(&sizes);
  return sizes.dirty_bytes >> GRANULE_SHIFT;
}

#endif
