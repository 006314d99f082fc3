#include "ranges/large.h"

#include "config/limits.h"
#include "config/options.h"
#include "os/os.h"
#include "ranges/big.h"

/* Not with a hard limit, which counts only the requested part of a range. */
RESIDENT static size_t take_cached(struct large_request *request, const struct range_request *range,
                                   struct counters *counters) {
  bool is_plain = range->alignment_granules == 1 && !request->is_growing;
  if (!is_plain || range->granules > LARGE_GRANULES_MAX || limits.hard_bytes) return NO_GRANULE;
  unsigned class = large_class_of_granules(range->granules);
  size_t granules[RANGE_MAGAZINE_SLOTS];
  struct range_wish wish = {class, request->site, density_end_of(request->bytes)};
  unsigned most = 1;
  if (request->magazines) most = range_magazine_row(request->magazines, class, wish.end).count / 2;
  unsigned taken = range_cache_take(&wish, granules, most, counters);
  if (!taken) return NO_GRANULE;
  request->refilled = taken;
  if (load_relaxed(&range_info(granules[0])->site) == request->site)
    count(counters, COUNT_large_site_hits);
  count(counters, COUNT_large_cache_hits);
  if (taken > 1) range_magazine_fill(request->magazines, class, granules + 1, taken - 1, counters);
  return granules[0];
}

RESIDENT static size_t take_freed(struct large_request *request, const struct range_request *range,
                                  struct counters *counters) {
  size_t granule = take_cached(request, range, counters);
  return granule != NO_GRANULE ? granule : range_take_used(range, counters);
}

/* Before the process grows, cached ranges merge. */
RESIDENT static size_t take_granule(struct large_request *request, struct counters *counters) {
  struct range_request range = {.granules = large_granules_for(request->bytes),
                                .alignment_granules = alignment_granules(request->alignment_bytes),
                                .home = request->home};
  if (request->is_growing) range.headroom = range.granules / HEADROOM_DIVISOR;
  if (range.granules > load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK) return NO_GRANULE;
  size_t granule = take_freed(request, &range, counters);
  if (granule != NO_GRANULE || request->is_growing) return granule;
  if (range_magazines_merge(request->magazines, range.granules << GRANULE_SHIFT, counters))
    granule = take_freed(request, &range, counters);
  if (granule != NO_GRANULE) return granule;
  granule = range_take_fresh(&range, counters);
  if (granule != NO_GRANULE && options.prefault)
    os_populate((void *)granule_address(granule), range.granules << GRANULE_SHIFT);
  return granule;
}

/* The last page of a Big block's range is not the block's: a mark that the program sets on its
 * block does not cover it (ranges/range_marks.c). */
static size_t colour_for(size_t granule, const struct large_request *request) {
  size_t colour = colour_bytes(granule, request->alignment_bytes);
  return colour + request->bytes > size_of_granules(range_info(granule)->granules) ? 0 : colour;
}

static void note_taken(size_t granule, uint32_t tag, struct counters *counters) {
  unsigned class = large_class_of_granules(range_info(granule)->granules);
  count(counters, COUNT_large_allocs);
  fetch_add_relaxed(&totals.large_live_bytes, class_bytes(class));
  owner_map_set(granule, map_entry(tag, class));
}

RESIDENT uintptr_t large_take(struct large_request *request, struct counters *counters) {
  request->refilled = 1;
  size_t granule = take_granule(request, counters);
  if (granule == NO_GRANULE) return 0;
  struct range_info *info = range_info(granule);
  request->is_zero = info->is_zero;
  range_count_for(granule, request->bytes); /* counted in full so far: the limit allows it */
  store_relaxed(&info->site, request->site);
  info->end = density_end_of(request->bytes);
  info->colour_bytes = (uint16_t)colour_for(granule, request);
  if (large_is_big(request->bytes, request->alignment_bytes) || request->is_plain_big)
    big_note_taken(granule, request->bytes, counters);
  else
    note_taken(granule, request->tag, counters);
  return range_block(granule);
}

static bool note_freed(size_t granule, uint32_t entry) {
  /* It may be a named heap's by now, if two threads free one block. acq_rel: one of two such
   * threads loses; orders nothing else. */
  if (!map_entry_is_live(entry) || map_class(entry) >= CLASS_COUNT ||
      !cas_strong_acq_rel(&window.owner_map[granule], &entry, entry & MAP_CLASS_MASK))
    return false;
  fetch_sub_relaxed(&totals.large_live_bytes, class_bytes(map_class(entry)));
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
  if (entry == MAP_ENTRY_BIG_LIVE || limits.hard_bytes)
    range_give(granule, info->stamp_ms, counters);
  else
    range_cache_give(granule, map_class(entry), counters);
  return true;
}
