#include "pool/range_cut.h"

#include "map/metadata.h"

RESIDENT struct range_chunk *range_make_records(void) {
  return metadata_allocate(sizeof(struct range_chunk));
}

RESIDENT void range_publish_records(size_t chunk, struct range_chunk *records, unsigned arena,
                                    bool may_be_huge) {
  records->arena = (uint8_t)arena;
  store_relaxed(&records->may_be_huge, may_be_huge);
  chunk_publish(chunk, (void *)((uintptr_t)records | CHUNK_IS_RANGES)); /* NOLINT */
}

RESIDENT bool range_add_records(size_t chunk, unsigned arena, bool may_be_huge) {
  if (chunk_metadata(chunk)) return true;
  struct range_chunk *records = range_make_records();
  if (!records) return false;
  range_publish_records(chunk, records, arena, may_be_huge);
  return true;
}

/* No other thread looks for records there: the chunks lie in this range alone. They may have been let in (map/huge.h). */
bool range_prepare_cut(size_t whole, size_t at) {
  if (range_may_cut(whole, at)) return true;
  unsigned arena = range_chunk(whole)->arena;
  return range_add_records((at - 1) / GRANULES_PER_CHUNK, arena, true) &&
         range_add_records(at / GRANULES_PER_CHUNK, arena, true);
}
