/* range_cut.h: where a range may be cut in two: between chunks that have records.
 *
 * Fresh chunks that one request fills get records at their ends only; the others when a range is cut there for the first time. Memory for
 * records may be refused, and is allocated without a lock: so a free range is cut with its arena's spare records, and a thread that lacks
 * some brings them and begins anew. */
#ifndef HAK_POOL_RANGE_CUT_H
#define HAK_POOL_RANGE_CUT_H

#include "pool/range_record.h"

/* Records for a chunk, NULL when memory is refused; they are the chunk's from now on. */
struct range_chunk *range_make_records(void);
void range_publish_records(size_t chunk, struct range_chunk *records, unsigned arena,
                           bool may_be_huge);
/* Gives a chunk without records records of this arena; false when memory is refused. */
bool range_add_records(size_t chunk, unsigned arena, bool may_be_huge);

/* Whether the range that begins at `whole` may be cut in front of `at`; true too where it begins, or ends. */
INLINE bool range_may_cut(size_t whole, size_t at) {
  if (at == whole || at - whole == range_record(whole)->info.granules) return true;
  return chunk_metadata((at - 1) / GRANULES_PER_CHUNK) && chunk_metadata(at / GRANULES_PER_CHUNK);
}

/* Adds the missing records to a range that is in no set, and the caller's alone; false when memory is refused. */
bool range_prepare_cut(size_t whole, size_t at);

#endif
