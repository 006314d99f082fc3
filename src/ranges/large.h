/* large.h: blocks of ranges of their own: Large ones above 64 KiB, by class, and Big ones above 1
 * MiB (ranges/big.h).  No header.
 *
 *   a thread's magazines (ranges/range_magazine.h) → a cache by class and call site
 *   (ranges/range_cache.h)
 *     → range arenas (ranges/range.h)
 *
 * The owner map entry of a live block has the taking heap's tag, of a freed one MAP_TAG_NONE, and
 * both its class, so a second free is recognised until the range is used otherwise.  Free's fast
 * path has no magazine for them. */
#ifndef HAK_RANGES_LARGE_H
#define HAK_RANGES_LARGE_H

#include "ranges/range_magazine.h"

struct large_request {
  size_t bytes;           /* requested; at most REQUEST_MAX_BYTES */
  size_t alignment_bytes; /* a power of two; above LARGE_MAX_BYTES the block is a Big one */
  uint32_t site;
  uint32_t tag; /* of the heap that takes it, for diagnosis: the thread that frees it may keep it */
  unsigned home;   /* of the arenas to look in first */
  bool is_growing; /* freed memory only, in front of free memory that the block may grow into */
  struct range_magazines *magazines; /* of the heap; NULL: it has none */
  bool is_plain_big;                 /* a Big block of any size, outside any heap */
  bool is_zero;                      /* out: the block reads as zero */
  unsigned refilled;                 /* out: ranges that were taken, with those for the magazines */
};

INLINE bool large_is_big(size_t bytes, size_t alignment_bytes) {
  return bytes > LARGE_MAX_BYTES || alignment_bytes > LARGE_MAX_BYTES;
}

/* A Large block of the thread's own magazine, or 0: only the few instructions that most calls
 * need. */
INLINE uintptr_t large_take_own(struct range_magazines *magazines, size_t bytes, uint32_t site,
                                uint32_t tag) {
  unsigned class = large_class_of_size(bytes);
  uint8_t end = density_end_of(bytes);
  size_t granule = range_magazine_take(magazines, class, end);
  if (granule == NO_GRANULE) return 0;
  if (UNLIKELY(load_relaxed(&window.owner_map[granule]) != map_entry(MAP_TAG_NONE, class))) {
    range_magazine_found_another(granule, class);
    return 0;
  }
  struct range_info *info = range_info(granule);
  store_relaxed(&info->site, site);
  info->end = end;
  owner_map_set(granule, map_entry(tag, class));
  return granule_address(granule) + info->colour_bytes;
}

/* Frees a live Large block into it, at this time; false when the magazine has no room, or the block
 * does not exist. */
INLINE bool large_keep_own(struct range_magazines *magazines, uintptr_t block, uint32_t entry,
                           uint64_t now_ms) {
  size_t granule = granule_of(block);
  struct range_info *info = range_info(granule);
  bool is_block = granule_address(granule) + info->colour_bytes == block;
  if (UNLIKELY(!is_block || info->is_sampled)) return false;
  info->stamp_ms = (uint32_t)now_ms;
  info->is_zero = false;
  if (!range_magazine_keep(magazines, map_class(entry), info->end, granule)) return false;
  purge_want(); /* last: a round that begins from here on finds the range */
  return true;
}

/* A block, or 0. */
uintptr_t large_take(struct large_request *request, struct counters *counters);

/* Frees a live block to the cache or the arenas; false when another thread has just done it. */
bool large_give(uintptr_t block, struct counters *counters);

#endif
