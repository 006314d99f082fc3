#include "large/resize.h"

#include "large/big.h"
#include "large/large.h"

/* Keeps the owner, in the class of the new size; a Big block's entry names no heap (src/map/window.h). */
static uint32_t entry_for(uint32_t entry, size_t size) {
  if (map_entry_is_named(entry)) return entry;
  if (size > LARGE_MAX_BYTES) return MAP_ENTRY_BIG_LIVE;
  return (entry & ~MAP_CLASS_MASK) | large_class_of_size(size);
}

static int64_t usable_bytes(uint32_t entry, const struct range_info *info) {
  return (int64_t)(map_entry_is_big(entry) ? size_of_granules(info->granules)
                                           : class_bytes(entry & MAP_CLASS_MASK));
}

/* Adds the block's bytes to the live ones of its tier, or (sign -1) takes them away. */
static void account(uint32_t entry, const struct range_info *info, int sign) {
  int64_t bytes = sign * usable_bytes(entry, info);
  if (map_entry_is_big(entry))
    big_count(bytes, sign);
  else
    fetch_add_relaxed(&totals.large_live_bytes, (uint64_t)bytes);
}

/* Counts or uncounts the pages at the end that a hard limit leaves out. */
static bool count_end(size_t granule, size_t size, size_t before, size_t after) {
  size_t counted = size_of_granules(before) - range_uncounted_bytes(range_info(granule));
  if (after > before) return range_count_for(granule, size_of_granules(before));
  if (after == before) return size <= counted || range_count_for(granule, size);
  range_count_whole(granule); /* they are free, with the rest */
  return true;
}

bool resize_in_place(uintptr_t block, size_t size, struct counters *counters) {
  size_t granule = granule_of(block);
  const struct range_info *info = range_info(granule);
  uint32_t entry = owner_map_entry(block);
  size_t before = info->granules, after = granules_of_size(size);
  if (UNLIKELY(info->uncounted) && !count_end(granule, size, before, after)) return false;
  account(entry, info, -1);
  bool is_resized = after > before ? range_extend(granule, after, counters)
                                   : range_shrink(granule, after, counters);
  if (is_resized) owner_map_set(granule, entry = entry_for(entry, size));
  account(entry, info, 1);
  return is_resized || after < before; /* without a cut it stays as large as it is */
}
