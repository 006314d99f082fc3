/* range_limit.h: what a hard limit does not count.
 *
 * A range is whole granules; what was asked for may end up to 60 KiB before.  Where a hard limit is set, the pages
 * after it are not the program's (malloc_usable_size says so), have no memory, and are not counted as held: from when a
 * range is taken for a block until the block grows into them or the range is free for others. */
#ifndef HAK_POOL_RANGE_LIMIT_H
#define HAK_POOL_RANGE_LIMIT_H

#include "config/limits.h"
#include "pool/range_record.h"

INLINE size_t range_uncounted_bytes(const struct range_info *info) {
  return (size_t)info->uncounted * COLOUR_ROOM_BYTES;
}
/* Changes how much of it is not counted; whoever calls settles what is committed. */
void range_set_uncounted(struct range_info *info, size_t bytes);

/* A live or cached range is for a block of `bytes` from now on; false when the limit forbids it. */
bool range_count_within_limit(size_t granule, size_t bytes);
INLINE bool range_count_for(size_t granule, size_t bytes) {
  return LIKELY(!limits.hard_bytes) || range_count_within_limit(granule, bytes);
}
/* Counts it whole, without asking. */
void range_count_whole(size_t granule);

#endif
