/* range_limit.h: memory that a hard limit does not count.
 *
 * A range is whole granules; the request may end up to 60 KiB before. Where a hard limit is set, the pages after it do not belong to the
 * program (malloc_usable_size excludes them), have no memory, and do not count as held: from when a range is taken for a block until the
 * block grows into them or the range is free for others. */
#ifndef HAK_POOL_RANGE_LIMIT_H
#define HAK_POOL_RANGE_LIMIT_H

#include "config/limits.h"
#include "pool/range_record.h"

INLINE size_t range_uncounted_bytes(const struct range_info *info) {
  return (size_t)info->uncounted * COLOUR_ROOM_BYTES;
}
/* Sets the uncounted bytes; the caller settles the committed bytes. */
void range_set_uncounted(struct range_info *info, size_t bytes);

/* A live or cached range is for a block of `bytes` from now on; false when the limit forbids it. */
bool range_count_within_limit(size_t granule, size_t bytes);
INLINE bool range_count_for(size_t granule, size_t bytes) {
  return LIKELY(!limits.hard_bytes) || range_count_within_limit(granule, bytes);
}
/* Counts it in full, without asking. */
void range_count_whole(size_t granule);

#endif
