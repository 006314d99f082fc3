#include "large/large.h"

#include "config/limits.h"
#include "large/density.h"
#include "large/whole_cache.h"
#include "map/colour.h"
#include "os/os.h"

/* Guessed, and bounded by age as well: enough for a few blocks of each of some sites. */
#define LARGE_CACHE_BYTES ((uint64_t)32 << 20)

static struct site_cache cache;
static struct whole_cache whole;

static size_t take_cached(const struct large_request *request, size_t granules,
                          struct counters *counters) {
  size_t cached = site_cache_take(&cache, request->site, granules, granules);
  bool is_of_site =
      cached != NO_GRANULE && load_relaxed(&range_info(cached)->site) == request->site;
  if (cached == NO_GRANULE) cached = whole_cache_take(&whole, request->class);
  if (cached == NO_GRANULE) return NO_GRANULE;
  if (UNLIKELY(!range_count_for(cached, request->bytes))) {
    range_give(cached, range_info(cached)->stamp_ms, counters);
    return NO_GRANULE;
  }
  count(counters, COUNT_large_cache_hits);
  if (is_of_site) count(counters, COUNT_large_site_hits);
  return cached;
}

/* Before the process grows, what is cached merges; but not where it is mostly untouched, and would not stay so. */
static size_t take_range(const struct range_request *request, struct counters *counters) {
  if (density_is_low()) return range_take(request, counters);
  struct purge everything = PURGE_EVERYTHING;
  whole_cache_purge(&whole, &everything, counters);
  return site_cache_take_range(&cache, request, counters);
}

static size_t take_granule(struct large_request *request, struct counters *counters) {
  size_t granules = large_class_granules(request->class);
  size_t alignment = alignment_granules(request->alignment_bytes);
  if (alignment == 1 && request->source != FROM_FREED_WITH_HEADROOM) {
    size_t cached = take_cached(request, granules, counters);
    if (cached != NO_GRANULE) return cached;
  }
  struct range_request range = {granules, alignment, request->home, request->source};
  size_t granule = take_range(&range, counters);
  if (granule == NO_GRANULE) return NO_GRANULE;
  request->is_zero = range_info(granule)->is_zero;
  range_count_for(granule, request->bytes); /* counted whole so far: the limit allows it */
  return granule;
}

RESIDENT uintptr_t large_take(struct large_request *request, struct counters *counters) {
  request->is_zero = false;
  size_t granule = take_granule(request, counters);
  if (granule == NO_GRANULE) return 0;
  count(counters, COUNT_large_allocs);
  struct range_info *info = range_info(granule);
  size_t bytes = class_bytes(request->class);
  store_relaxed(&info->site, request->site);
  info->colour_bytes = (uint16_t)colour_bytes(granule, request->alignment_bytes);
  fetch_add_relaxed(&totals.large_live_bytes, bytes);
  owner_map_set(granule, request->tag | request->class);
  return range_block(granule);
}

/* The budget is of resident bytes. */
static bool keep_whole(size_t granule, unsigned class) {
  if (!density_is_low()) return false;
  uint64_t budget = limits_budget(LARGE_CACHE_BYTES) * DENSITY_PARTS / density_parts();
  return whole_cache_put(&whole, class, granule, budget);
}

RESIDENT void large_give(uintptr_t block, struct counters *counters) {
  size_t granule = granule_of(block);
  struct range_info *info = range_info(granule);
  uint32_t now_ms = (uint32_t)os_now_coarse_ms();
  unsigned class = load_relaxed(&window.owner_map[granule]) & MAP_CLASS_MASK;
  owner_map_set(granule, MAP_TAG_NONE | class);
  fetch_sub_relaxed(&totals.large_live_bytes, class_bytes(class));
  info->stamp_ms = now_ms;
  info->is_zero = false;
  density_note(granule);
  if (!site_cache_put(&cache, load_relaxed(&info->site), granule,
                      limits_budget(LARGE_CACHE_BYTES)) &&
      !keep_whole(granule, class))
    range_give(granule, now_ms, counters);
  purge_want(); /* last: a round that begins from here on finds the range */
}

LONG_LIVED void large_purge(struct purge *purge, struct counters *counters) {
  whole_cache_purge(&whole, purge, counters);
  site_cache_purge(&cache, purge, counters);
}
