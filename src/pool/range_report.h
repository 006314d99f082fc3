/* range_report.h: the existing ranges, for diagnosis and reports: slow. */
#ifndef HAK_POOL_RANGE_REPORT_H
#define HAK_POOL_RANGE_REPORT_H

#include "base/counters.h"
#include "pool/range_record.h"

/* The first granule of the live or cached range that covers this granule, or NO_GRANULE. Looks back `steps_max` granules at most, or chunks
 * without records; beyond: NO_GRANULE. */
size_t range_covering(size_t granule, size_t steps_max);
/* Hardened mode: notes in a live range's records where it begins, from granule `from` on, so that it is found soon from anywhere
 * inside. The note is a hint, true only while the range lives. */
void range_note_begin(size_t granule, size_t from);

struct range_sizes {
  uint64_t mapped_bytes, dirty_bytes, clean_bytes;
};
void range_measure(struct range_sizes *sizes);

/* The number of DIRTY ranges, counted one by one. */
uint64_t range_count_dirty(struct counters *counters);

#endif
