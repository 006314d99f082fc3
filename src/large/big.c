#include "large/big.h"

#include "config/limits.h"
#include "config/options.h"
#include "map/colour.h"
#include "os/os.h"

/* A cached range may be larger than asked for by this part: the rest would be wasted. */
enum { CACHE_SLACK_DIVISOR = 16 };

static struct site_cache big_cache;

/* An alignment may bring even a request of no bytes here. */
static size_t granules_of(size_t bytes) { return bytes ? granules_of_size(bytes) : 1; }

size_t big_good_bytes(size_t bytes) { return size_of_granules(granules_of(bytes)); }

size_t big_usable_bytes(uintptr_t block) {
  return size_of_granules(range_info(granule_of(block))->granules);
}

static size_t take_granule(struct big_request *request, struct counters *counters) {
  size_t granules = granules_of(request->bytes);
  if (request->alignment_bytes <= GRANULE_BYTES && request->source != FROM_FREED_WITH_HEADROOM) {
    size_t cached = site_cache_take(&big_cache, request->site, granules,
                                    granules + granules / CACHE_SLACK_DIVISOR);
    if (cached != NO_GRANULE && LIKELY(range_count_for(cached, request->bytes))) {
      count(counters, COUNT_big_cache_hits);
      return cached;
    }
    if (UNLIKELY(cached != NO_GRANULE)) range_give(cached, range_info(cached)->stamp_ms, counters);
  }
  struct range_request range = {granules, alignment_granules(request->alignment_bytes),
                                request->home, request->source};
  size_t granule = site_cache_take_range(&big_cache, &range, counters);
  if (granule == NO_GRANULE) return NO_GRANULE;
  request->is_zero = range_info(granule)->is_zero;
  range_count_for(granule, request->bytes); /* counted whole so far: the limit allows it */
  return granule;
}

void big_count(int64_t bytes, int64_t blocks) {
  uint64_t now_bytes = fetch_add_relaxed(&totals.big_live_bytes, (uint64_t)bytes) + (uint64_t)bytes;
  uint64_t now_blocks =
      fetch_add_relaxed(&totals.big_live_blocks, (uint64_t)blocks) + (uint64_t)blocks;
  if (blocks < 0) return;
  count_peak(&totals.big_peak_bytes, now_bytes);
  count_peak(&totals.big_peak_blocks, now_blocks);
}

void big_note_taken(size_t granule, size_t requested_bytes, struct counters *counters) {
  count(counters, COUNT_big_allocs);
  count_add(counters, COUNT_big_requested_bytes, requested_bytes);
  big_count((int64_t)size_of_granules(range_info(granule)->granules), 1);
  owner_map_set(granule, MAP_ENTRY_BIG_LIVE);
}

bool big_note_freed(size_t granule, struct counters *counters) {
  uint32_t entry = MAP_ENTRY_BIG_LIVE;
  /* One of two threads that free it at once is told so; orders nothing else. */
  if (!cas_strong_acq_rel(&window.owner_map[granule], &entry, MAP_ENTRY_BIG_FREE)) return false;
  count(counters, COUNT_big_frees);
  big_count(-(int64_t)size_of_granules(range_info(granule)->granules), -1);
  return true;
}

uintptr_t big_take(struct big_request *request, struct counters *counters) {
  request->is_zero = false;
  if (granules_of(request->bytes) > load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK)
    return 0;
  size_t granule = take_granule(request, counters);
  if (granule == NO_GRANULE) return 0;
  struct range_info *info = range_info(granule);
  store_relaxed(&info->site, request->site);
  info->colour_bytes = (uint16_t)colour_bytes(granule, request->alignment_bytes);
  big_note_taken(granule, request->bytes, counters);
  return range_block(granule);
}

/* A part of the budget is for whole blocks of sites that ask for one size again and again, the rest for what
 * splits and merges; one block may take a part of that part. */
enum { WHOLE_BLOCKS_DIVISOR = 4, ONE_BLOCK_DIVISOR = 64 };

static bool keep_whole(size_t granule) {
  const struct range_info *info = range_info(granule);
  if ((uint64_t)info->granules << GRANULE_SHIFT > options.big_cache_bytes / ONE_BLOCK_DIVISOR)
    return false;
  if (!site_cache_wants(&big_cache, load_relaxed(&info->site), info->granules)) return false;
  return site_cache_put(&big_cache, load_relaxed(&info->site), granule,
                        limits_budget(options.big_cache_bytes / WHOLE_BLOCKS_DIVISOR));
}

void big_give(uintptr_t block, struct counters *counters) {
  size_t granule = granule_of(block);
  struct range_info *info = range_info(granule);
  uint32_t now_ms = (uint32_t)os_now_coarse_ms();
  if (UNLIKELY(!big_note_freed(granule, counters))) return;
  info->stamp_ms = now_ms;
  info->is_zero = false;
  if (!keep_whole(granule)) range_give(granule, now_ms, counters);
  purge_want(); /* last: a round that begins from here on finds the range */
}

uintptr_t big_move_pages(uintptr_t *target, uintptr_t source, size_t bytes,
                         struct counters *counters) {
  size_t granule = granule_of(*target);
  uint16_t colour_bytes = range_info(granule_of(source))->colour_bytes;
  uintptr_t from = granule_address(granule_of(source));
  size_t moved_bytes = round_up(colour_bytes + bytes, os_page_bytes());
  enum os_change result =
      os_move_pages((void *)granule_address(granule), (void *)from, moved_bytes);
  if (result == OS_LOST && big_note_freed(granule, counters)) {
    range_give_lost(granule, counters);
    *target = 0;
  }
  if (result != OS_DONE) return 0;
  count(counters, COUNT_big_mremaps);
  range_note_moved(granule);
  range_info(granule)->colour_bytes = colour_bytes; /* whole pages move */
  return range_block(granule);
}

LONG_LIVED void big_purge(struct purge *purge, struct counters *counters) {
  site_cache_purge(&big_cache, purge, counters);
}
