/* whole_cache.h: freed Large ranges kept whole, by class, for programs that touch little of them (density.h).
 *
 *   class → a stack of ranges, linked through their records
 *
 * The next block of the class gets the same pages, of which the same few are touched: in ranges that
 * split and merge all become resident (docs/decisions/0024).  Lock-free; the one freed last is taken first. */
#ifndef HAK_LARGE_WHOLE_CACHE_H
#define HAK_LARGE_WHOLE_CACHE_H

#include "base/tagged_stack.h"
#include "pool/range.h"

struct whole_cache {
  ATOMIC(uint64_t) cached_bytes;
  struct tagged_stack stacks[LARGE_CLASS_COUNT];
};

/* A cached range of the class, or NO_GRANULE. */
size_t whole_cache_take(struct whole_cache *cache, unsigned class);

/* Keeps a range of the class; false when the budget is full. */
bool whole_cache_put(struct whole_cache *cache, unsigned class, size_t granule,
                     uint64_t budget_bytes);

/* Hands ranges that are old enough to the range arenas. */
void whole_cache_purge_cached(struct whole_cache *cache, struct purge *purge,
                              struct counters *counters);
INLINE void whole_cache_purge(struct whole_cache *cache, struct purge *purge,
                              struct counters *counters) {
  if (load_relaxed(&cache->cached_bytes)) whole_cache_purge_cached(cache, purge, counters);
}

#endif
