/* site_cache.h: freed Large and Big ranges, kept whole and found again by call site.
 *
 *   shard[site % 64] → 4 slots, each one word:   | granules : 32 | first granule + 1 : 32 |
 *
 * A program allocates the same sizes at the same places again and again, so a site mostly finds just
 * what it gave back, without a lock, a split or a merge.  Lock-free: a slot is taken and filled by
 * compare-and-swap of its one word; a range in a slot belongs to nobody else. */
#ifndef HAK_LARGE_SITE_CACHE_H
#define HAK_LARGE_SITE_CACHE_H

#include "pool/range.h"

enum { SITE_SHARDS = 64, SLOTS_PER_SHARD = 4 };

struct site_cache {
  ATOMIC(uint64_t) cached_bytes;
  struct {
    CACHE_ALIGNED ATOMIC(uint64_t) slots[SLOTS_PER_SHARD];
    ATOMIC(uint64_t) wanted; /* what was asked for last, and whether twice in a row; a hint */
  } shards[SITE_SHARDS];
};

/* A cached range of `site` with `granules` to `granules_max` granules, or NO_GRANULE. */
size_t site_cache_take(struct site_cache *cache, uint32_t site, size_t granules,
                       size_t granules_max);

/* Has the site asked twice in a row for just this size?  Where sizes differ each time, a whole block that
 * waits for its own keeps its neighbours from merging. */
bool site_cache_wants(const struct site_cache *cache, uint32_t site, size_t granules);

/* Keeps a range; false when the shard or the budget is full. */
bool site_cache_put(struct site_cache *cache, uint32_t site, size_t granule, uint64_t budget_bytes);

/* A live range as from range_take_used or, when nothing freed fits, not even after this cache has given
 * all its ranges to the arenas to be merged, from range_take_fresh; resident then, with option prefault.
 * Or NO_GRANULE. */
size_t site_cache_take_range(struct site_cache *cache, const struct range_request *request,
                             struct counters *counters);

/* Hands ranges that are old enough to the range arenas. */
void site_cache_purge(struct site_cache *cache, struct purge *purge, struct counters *counters);

#endif
