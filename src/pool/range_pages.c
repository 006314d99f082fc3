#include "pool/range_pages.h"

#include "base/counters.h"
#include "config/options.h"
#include "map/huge.h"

/* The `count` granules from `first` on as a mask of their chunk's, as far as they lie in it. */
static uint32_t chunk_mask(size_t first, size_t count) {
  size_t room = GRANULES_PER_CHUNK - first % GRANULES_PER_CHUNK;
  return (uint32_t)(low_bits((unsigned)(count < room ? count : room))
                    << first % GRANULES_PER_CHUNK);
}

void range_note_purge(size_t first, size_t granules) {
  for (size_t at = first, end = first + granules; at < end; at = next_chunk(at))
    range_chunk(at)->purged |= chunk_mask(at, end - at);
}

RESIDENT void range_note_refaults(size_t first, size_t granules) {
  unsigned again = 0;
  for (size_t at = first, end = first + granules; at < end; at = next_chunk(at)) {
    struct range_chunk *chunk = range_chunk(at);
    uint32_t mask = chunk_mask(at, end - at);
    again += count_bits(chunk->purged & mask);
    chunk->purged &= ~mask;
  }
  if (again) fetch_add_relaxed(&totals.refaulted_bytes, again * GRANULE_BYTES);
}

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
  huge_keep_out(granule_address(first), granules << GRANULE_SHIFT);
  for (size_t at = first, end = first + granules; at < end; at = next_chunk(at))
    store_relaxed(&range_chunk(at)->may_be_huge, false);
}
