/* ranges.h: ranges in a window of their own, for tests of the caches over them. */
#ifndef RANGES_H
#define RANGES_H

#include "child.h"
#include "fake/os_fake.h"
#include "map/metadata.h"
#include "map/window.h"
#include "pool/range.h"

static struct counters counters;

static inline void ranges_set_up(void) { REQUIRE(window_init(UINT64_C(64) << 30) && metadata_allocate(1)); }

/* One of fresh memory, as of now. */
static inline size_t ranges_fresh(size_t granules) {
  struct range_request request = {granules, 1, 0, FROM_ANY};
  size_t granule = range_take_fresh(&request, &counters);
  REQUIRE(granule != NO_GRANULE);
  range_info(granule)->stamp_ms = (uint32_t)os_now_coarse_ms();
  return granule;
}

#endif
