#include "ranges/big.h"

#include <string.h>

#include "config/options.h"
#include "map/huge.h"
#include "os/os.h"

/* From this size on zeros are not written to pages that may be untouched: the pages go back to the
 * system. Where all of them were touched that costs a little more. */
#define CLEARED_BY_PURGE_BYTES ((size_t)256 << 20)

size_t big_good_bytes(size_t bytes) { return size_of_granules(large_granules_for(bytes)); }

size_t big_usable_bytes(uintptr_t block) {
  return size_of_granules(range_info(granule_of(block))->granules);
}

void big_count(int64_t bytes, int64_t blocks) {
  uint64_t now_bytes = fetch_add_relaxed(&totals.big_live_bytes, (uint64_t)bytes) + (uint64_t)bytes;
  uint64_t now_blocks =
      fetch_add_relaxed(&totals.big_live_blocks, (uint64_t)blocks) + (uint64_t)blocks;
  if (blocks < 0) return;
  count_peak(&totals.big_peak_bytes, now_bytes);
  count_peak(&totals.big_peak_blocks, now_blocks);
}

/* Memory that may have huge pages never goes back in part (map/huge.h). */
static void clear_by_purge(uintptr_t address, size_t bytes) {
  size_t unit = huge_is_default() ? CHUNK_BYTES : os_page_bytes();
  uintptr_t end = address + bytes, first = round_up(address, unit), last = round_down(end, unit);
  void *begin = (void *)address, *whole = (void *)first, *rest = (void *)last; /* NOLINT */
  if (!os_purge(whole, last - first)) {
    memset(begin, 0, bytes);
    return;
  }
  memset(begin, 0, first - address);
  memset(rest, 0, end - last);
}

void big_clear(uintptr_t address, size_t bytes) {
  if (LIKELY(bytes < CLEARED_BY_PURGE_BYTES || options.prefault)) {
    memset((void *)address, 0, bytes); /* NOLINT(performance-no-int-to-ptr) */
    return;
  }
  clear_by_purge(address, bytes);
}

/* A guarded block holds its open pages alone. */
static int64_t held_bytes(size_t granule) {
  const struct range_info *info = range_info(granule);
  return (int64_t)(UNLIKELY(info->is_guarded) ? range_open_bytes(granule)
                                              : size_of_granules(info->granules));
}

static uint32_t live_entry(size_t granule) {
  return UNLIKELY(range_info(granule)->is_guarded) ? MAP_ENTRY_GUARDED : MAP_ENTRY_BIG_LIVE;
}

void big_note_taken(size_t granule, size_t requested_bytes, struct counters *counters) {
  count(counters, COUNT_big_allocs);
  count_add(counters, COUNT_big_requested_bytes, requested_bytes);
  big_count(held_bytes(granule), 1);
  owner_map_set(granule, live_entry(granule));
}

bool big_note_freed(size_t granule, struct counters *counters) {
  uint32_t entry = live_entry(granule), freed = entry & MAP_CLASS_MASK;
  /* If two threads free it at once one of them loses here; orders nothing else. */
  if (!cas_strong_acq_rel(&window.owner_map[granule], &entry, freed)) return false;
  count(counters, COUNT_big_frees);
  big_count(-held_bytes(granule), -1);
  return true;
}

bool big_move_pages(uintptr_t *target, uintptr_t block, uintptr_t source, size_t bytes,
                    struct counters *counters) {
  size_t granule = granule_of(*target), page_bytes = os_page_bytes();
  uintptr_t to = round_down(block, page_bytes), from = round_down(source, page_bytes);
  size_t moved_bytes = round_up(block - to + bytes, page_bytes);
  enum os_change result = os_move_pages((void *)to, (void *)from, moved_bytes);
  if (result == OS_LOST && big_note_freed(granule, counters)) {
    range_count_whole(granule);
    range_give_lost(granule, counters);
    *target = 0;
  }
  if (result != OS_DONE) return false;
  count(counters, COUNT_big_mremaps);
  range_note_moved(granule);
  range_info(granule)->colour_bytes = (uint16_t)(block - granule_address(granule));
  return true;
}

/* ---- in place -------------------------------------------------------------------------------- */

/* Keeps the owner, in the class of the new size; a Big block's entry names no heap
 * (src/map/window.h). */
static uint32_t entry_for(uint32_t entry, size_t size) {
  if (map_entry_is_named(entry)) return entry;
  if (size > LARGE_MAX_BYTES) return MAP_ENTRY_BIG_LIVE;
  return map_entry(entry & ~MAP_CLASS_MASK, large_class_of_size(size));
}

static int64_t usable_bytes(uint32_t entry, const struct range_info *info) {
  return (int64_t)(map_entry_is_big(entry) ? size_of_granules(info->granules)
                                           : class_bytes(map_class(entry)));
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
  return after < before || size <= counted || range_count_for(granule, size);
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
