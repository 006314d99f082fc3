#include "ranges/range_record.h"

#include "map/metadata.h"

RESIDENT struct range_chunk *range_make_records(void) {
  return metadata_allocate(sizeof(struct range_chunk));
}

RESIDENT void range_publish_records(size_t chunk, struct range_chunk *records, unsigned arena,
                                    char huge_state) {
  records->arena = (uint8_t)arena;
  store_relaxed(&records->huge_state, huge_state);
  chunk_publish(chunk, (void *)((uintptr_t)records | CHUNK_IS_RANGES)); /* NOLINT */
}

RESIDENT bool range_add_records(size_t chunk, unsigned arena, char huge_state) {
  if (chunk_metadata(chunk)) return true;
  struct range_chunk *records = range_make_records();
  if (!records) return false;
  range_publish_records(chunk, records, arena, huge_state);
  return true;
}

/* No other thread looks for records there: the chunks lie in this range alone. They may have been
 * let in (map/huge.h). */
bool range_prepare_cut(size_t whole, size_t at) {
  if (range_may_cut(whole, at)) return true;
  unsigned arena = range_chunk(whole)->arena;
  return range_add_records((at - 1) / GRANULES_PER_CHUNK, arena, HUGE_LET_IN) &&
         range_add_records(at / GRANULES_PER_CHUNK, arena, HUGE_LET_IN);
}

/* ---- huge pages ------------------------------------------------------------------------------ */

static void refuse_huge(size_t granule) {
  struct range_chunk *chunk = range_chunk(granule);
  if (load_relaxed(&chunk->huge_state) == HUGE_LET_IN)
    huge_refuse(granule / GRANULES_PER_CHUNK, &chunk->huge_state);
}

RESIDENT void range_refuse_huge_at_ends(size_t first, size_t granules) {
  size_t end = first + granules;
  if (!huge_is_default()) return;
  if (first % GRANULES_PER_CHUNK) refuse_huge(first);
  if (end % GRANULES_PER_CHUNK) refuse_huge(end - 1);
}

void range_keep_huge_out(size_t first, size_t granules) {
  if (!huge_is_default()) return;
  huge_keep_out(granule_address(first), granules << GRANULE_SHIFT);
  for (size_t at = first, end = first + granules; at < end; at = next_chunk(at)) {
    struct range_chunk *chunk = range_chunk_if_any(at);
    if (chunk) store_relaxed(&chunk->huge_state, HUGE_KEPT_OUT);
  }
}
