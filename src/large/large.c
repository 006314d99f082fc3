#include "large/large.h"

#include "config/limits.h"
#include "config/options.h"
#include "large/big.h"
#include "large/density.h"
#include "large/range_cache.h"
#include "map/colour.h"
#include "os/os.h"

/* Not with a hard limit, which counts as much of a range as was asked for. */
static size_t take_cached(const struct large_request *request, const struct range_request *range,
                          struct counters *counters) {
  bool is_plain = range->alignment_granules == 1 && request->source == FROM_ANY;
  if (!is_plain || range->granules > LARGE_CLASS_COUNT || limits.hard_bytes) return NO_GRANULE;
  unsigned class = large_class_of_granules(range->granules);
  size_t granule = range_cache_take(request->home, class, request->site);
  if (granule == NO_GRANULE) return NO_GRANULE;
  if (load_relaxed(&range_info(granule)->site) == request->site)
    count(counters, COUNT_large_site_hits);
  count(counters, COUNT_large_cache_hits);
  return granule;
}

static size_t take_fresh(const struct range_request *request, struct counters *counters) {
  size_t granule = range_take_fresh(request, counters);
  if (granule != NO_GRANULE && options.prefault)
    os_populate((void *)granule_address(granule), request->granules << GRANULE_SHIFT);
  return granule;
}

/* Before the process grows, what is cached merges. */
RESIDENT static size_t take_range(const struct range_request *request, struct counters *counters) {
  size_t granule = range_take_used(request, counters);
  if (granule != NO_GRANULE || request->source != FROM_ANY) return granule;
  if (range_cache_merge(request->home, counters)) granule = range_take_used(request, counters);
  return granule != NO_GRANULE ? granule : take_fresh(request, counters);
}

RESIDENT static size_t take_granule(struct large_request *request, struct counters *counters) {
  struct range_request range = {.granules = request->bytes ? granules_of_size(request->bytes) : 1,
                                .alignment_granules = alignment_granules(request->alignment_bytes),
                                .home = request->home,
                                .source = request->source};
  if (range.granules > load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK) return NO_GRANULE;
  size_t granule = take_cached(request, &range, counters);
  if (granule != NO_GRANULE) return granule;
  granule = take_range(&range, counters);
  if (granule == NO_GRANULE) return NO_GRANULE;
  request->is_zero = range_info(granule)->is_zero;
  range_count_for(granule, request->bytes); /* counted whole so far: the limit allows it */
  return granule;
}

static void note_taken(size_t granule, uint32_t tag, struct counters *counters) {
  unsigned class = large_class_of_granules(range_info(granule)->granules);
  count(counters, COUNT_large_allocs);
  large_own(granule, class, tag);
}

RESIDENT uintptr_t large_take(struct large_request *request, struct counters *counters) {
  request->is_zero = false;
  size_t granule = take_granule(request, counters);
  if (granule == NO_GRANULE) return 0;
  struct range_info *info = range_info(granule);
  store_relaxed(&info->site, request->site);
  info->colour_bytes = (uint16_t)colour_bytes(granule, request->alignment_bytes);
  if (large_is_big(request->bytes, request->alignment_bytes))
    big_note_taken(granule, request->bytes, counters);
  else
    note_taken(granule, request->tag, counters);
  return range_block(granule);
}

static bool note_freed(size_t granule, uint32_t entry) {
  if (!map_entry_is_live(entry) || !large_disown(granule, entry)) return false;
  fetch_sub_relaxed(&totals.large_live_bytes, class_bytes(entry & MAP_CLASS_MASK));
  density_note(granule);
  return true;
}

bool large_give(uintptr_t block, struct counters *counters) {
  size_t granule = granule_of(block);
  uint32_t entry = owner_map_entry(block);
  struct range_info *info = range_info(granule);
  bool is_freed =
      entry == MAP_ENTRY_BIG_LIVE ? big_note_freed(granule, counters) : note_freed(granule, entry);
  if (UNLIKELY(!is_freed)) return false;
  info->stamp_ms = (uint32_t)os_now_coarse_ms();
  info->is_zero = false;
  range_give(granule, info->stamp_ms, counters);
  return true;
}
