/* large.h: blocks of ranges of their own: Large ones above 32 KiB, by class, and Big ones above 1 MiB
 * (large/big.h).  No header.
 *
 *   cache of freed Large ranges, by class and call site (large/range_cache.h) → range arenas (pool/range.h)
 *
 * The owner map entry of a live block is the taking heap's tag | class, of a freed one MAP_TAG_NONE | class, so a second
 * free is recognised until the range is used otherwise.  No magazine has their classes, so that free's fast path falls
 * through. */
#ifndef HAK_LARGE_LARGE_H
#define HAK_LARGE_LARGE_H

#include "large/range_cache.h"

struct large_request {
  size_t bytes;           /* as asked for, at most REQUEST_MAX_BYTES */
  size_t alignment_bytes; /* a power of two; above LARGE_MAX_BYTES the block is a Big one */
  uint32_t site;
  uint32_t tag;  /* of the heap that takes it, for diagnosis: whoever frees it may keep it */
  unsigned home; /* of the cache and the arenas to look in first */
  enum range_source source;
  bool is_zero; /* out: the block reads as zero */
};

INLINE bool large_is_big(size_t bytes, size_t alignment_bytes) {
  return bytes > LARGE_MAX_BYTES || alignment_bytes > LARGE_MAX_BYTES;
}

/* A range has become a live Large block of that heap's. */
INLINE void large_own(size_t granule, unsigned class, uint32_t tag) {
  fetch_add_relaxed(&totals.large_live_bytes, class_bytes(class));
  owner_map_set(granule, tag | class);
}

/* A live Large block's entry becomes a freed one's.  False when another thread has just done it. */
INLINE bool large_disown(size_t granule, uint32_t entry) {
  /* acq_rel: of two that do it one is told so; orders nothing else. */
  return cas_strong_acq_rel(&window.owner_map[granule], &entry, entry & MAP_CLASS_MASK);
}

/* A Large block that is cached in the shard of `home`, or 0: no more than the few instructions that most calls take. */
INLINE uintptr_t large_take_cached(unsigned home, unsigned class, uint32_t site, uint32_t tag) {
  size_t granule = range_cache_take_from(home, class, site);
  if (granule == NO_GRANULE) return 0;
  store_relaxed(&range_info(granule)->site, site);
  large_own(granule, class, tag);
  return range_block(granule);
}

/* Frees a live Large block into that shard; false when it has no room for it, or it is no block. */
INLINE bool large_give_cached(uintptr_t block, uint32_t entry, unsigned home) {
  size_t granule = granule_of(block);
  struct range_info *info = range_info(granule);
  if (UNLIKELY(!range_block_begins_at(block)) || UNLIKELY(!large_disown(granule, entry)))
    return false;
  info->stamp_ms = (uint32_t)os_now_coarse_ms();
  info->is_zero = false;
  if (LIKELY(range_cache_put(granule, home, entry & MAP_CLASS_MASK))) {
    fetch_sub_relaxed(&totals.large_live_bytes, class_bytes(entry & MAP_CLASS_MASK));
    purge_want(); /* last: a round that begins from here on finds the range */
    return true;
  }
  owner_map_set(granule, entry);
  return false;
}

/* A block, or 0. */
uintptr_t large_take(struct large_request *request, struct counters *counters);

/* Frees a live block to the arenas; false when another thread has just done it. */
bool large_give(uintptr_t block, struct counters *counters);

#endif
