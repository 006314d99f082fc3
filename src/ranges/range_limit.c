/* range_limit.c: the part of range.h about memory that a hard limit does not count. */
#include "config/options.h"
#include "map/commit.h"
#include "os/os.h"
#include "ranges/range.h"

/* The bytes after a block of `bytes`, wherever in its first page it begins; a larger cached range
 * has more. */
static size_t bytes_beyond(size_t granules, size_t bytes) {
  ASSERT(bytes <= size_of_granules(granules));
  size_t beyond =
      (granules << GRANULE_SHIFT) - round_up(bytes + COLOUR_ROOM_BYTES, os_page_bytes());
  size_t most = GRANULE_BYTES - os_page_bytes();
  return options.prefault ? 0 : beyond < most ? beyond : most;
}

void range_set_uncounted(struct range_info *info, size_t bytes) {
  fetch_add_relaxed(&totals.uncounted_bytes, (uint64_t)bytes - range_uncounted_bytes(info));
  info->uncounted = (uint8_t)(bytes / COLOUR_ROOM_BYTES);
}

void range_count_whole(size_t granule) {
  struct range_info *info = &range_record(granule)->info;
  if (LIKELY(!info->uncounted)) return;
  commit_settle(0, range_uncounted_bytes(info));
  range_set_uncounted(info, 0);
}

/* Makes the pages from `beyond` bytes before the end on give up their memory; those of a fresh
 * range have none yet. */
static bool give_end_back(size_t granule, size_t beyond, size_t bytes) {
  const struct range_info *info = &range_record(granule)->info;
  uintptr_t end = granule_address(granule) + ((uintptr_t)info->granules << GRANULE_SHIFT);
  return info->is_zero || os_purge((void *)(end - beyond), bytes); /* NOLINT */
}

bool range_count_within_limit(size_t granule, size_t bytes) {
  struct range_info *info = &range_record(granule)->info;
  size_t uncounted = range_uncounted_bytes(info), beyond = bytes_beyond(info->granules, bytes);
  if (beyond < uncounted) {
    if (!commit_take(uncounted - beyond)) return false;
    range_set_uncounted(info, beyond);
  } else if (beyond > uncounted && give_end_back(granule, beyond, beyond - uncounted)) {
    range_set_uncounted(info, beyond);
    commit_give(beyond - uncounted); /* last: no thread may take it while pages are there */
  }
  return true;
}
