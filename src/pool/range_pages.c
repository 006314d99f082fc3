#include "pool/range_pages.h"

#include "config/options.h"
#include "map/huge.h"

static void refuse_huge(size_t granule) {
  struct range_chunk *chunk = range_chunk(granule);
  if (load_relaxed(&chunk->may_be_huge))
    huge_refuse(granule / GRANULES_PER_CHUNK, &chunk->may_be_huge);
}

void range_refuse_huge_at_ends(size_t first, size_t granules) {
  size_t end = first + granules;
  if (LIKELY(!huge.is_always && !options.thp)) return;
  if (first % GRANULES_PER_CHUNK) refuse_huge(first);
  if (end % GRANULES_PER_CHUNK) refuse_huge(end - 1);
}

RESIDENT void range_settle_fresh(size_t first, size_t granules) {
  if (UNLIKELY(huge.is_always) && !options.thp) range_refuse_huge_at_ends(first, granules);
}

void range_keep_huge_out(size_t first, size_t granules) {
  if (LIKELY(!huge.is_always)) return;
  huge_keep_out(granule_address(first), granules << GRANULE_SHIFT);
  for (size_t at = first, end = first + granules; at < end; at = next_chunk(at)) {
    struct range_chunk *chunk = range_chunk_if_any(at);
    if (chunk) store_relaxed(&chunk->may_be_huge, false);
  }
}
