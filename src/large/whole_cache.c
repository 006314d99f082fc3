#include "large/whole_cache.h"

static ATOMIC(uint32_t) *link_of(uint32_t granule) { return &range_info(granule)->site; }

static struct tagged_stack *stack_of(struct whole_cache *cache, unsigned class) {
  return &cache->stacks[class - SLAB_CLASS_COUNT];
}

static uint64_t bytes_of(size_t granule) {
  return (uint64_t)range_info(granule)->granules << GRANULE_SHIFT;
}

RESIDENT size_t whole_cache_take(struct whole_cache *cache, unsigned class) {
  if (!load_relaxed(&cache->cached_bytes)) return NO_GRANULE;
  uint32_t granule = tagged_stack_pop(stack_of(cache, class), link_of);
  if (granule == NO_ITEM) return NO_GRANULE;
  fetch_sub_relaxed(&cache->cached_bytes, bytes_of(granule));
  return granule;
}

RESIDENT static void push(struct whole_cache *cache, unsigned class, size_t granule) {
  fetch_add_relaxed(&cache->cached_bytes, bytes_of(granule));
  tagged_stack_push(stack_of(cache, class), link_of, (uint32_t)granule);
}

bool whole_cache_put(struct whole_cache *cache, unsigned class, size_t granule,
                     uint64_t budget_bytes) {
  if (load_relaxed(&cache->cached_bytes) + bytes_of(granule) > budget_bytes) return false;
  push(cache, class, granule);
  return true;
}

/* The oldest first, so that those which stay lie as they lay. */
static void purge_class(struct whole_cache *cache, unsigned class, struct purge *purge,
                        struct counters *counters) {
  uint32_t chain = tagged_chain_reverse(tagged_stack_pop_all(stack_of(cache, class)), link_of);
  while (chain != NO_ITEM) {
    uint32_t granule = chain, stamp_ms = range_info(granule)->stamp_ms;
    chain = load_relaxed(link_of(granule));
    fetch_sub_relaxed(&cache->cached_bytes, bytes_of(granule));
    if (purge_is_due(purge, stamp_ms))
      range_give(granule, stamp_ms, counters);
    else
      push(cache, class, granule);
  }
}

void whole_cache_purge_cached(struct whole_cache *cache, struct purge *purge,
                              struct counters *counters) {
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++)
    purge_class(cache, class, purge, counters);
}
