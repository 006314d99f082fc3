/* range_record.h: how ranges are kept; for range.c, and for who describes it to others (src/observe).
 *
 *   law: the records of a range's first and last granule tell its kind, that of the first its length. */
#ifndef HAK_POOL_RANGE_RECORD_H
#define HAK_POOL_RANGE_RECORD_H

#include "pool/range.h"

enum range_kind {
  RANGE_NONE,
  RANGE_LIVE,
  RANGE_DIRTY,
  RANGE_CLEAN,
  RANGE_UNMAPPED,
  RANGE_OCCUPIED,
  RANGE_BUSY
};

struct range {
  struct range_info info;  /* granules is valid in the first record of free ranges too */
  uint32_t first;          /* in the last granule's record: the first granule */
  uint32_t next, previous; /* neighbours in the bin, by first granule */
  uint8_t kind;            /* enum range_kind, in the first and the last granule's record */
  bool was_moved;          /* its mapping is a fragment: remap instead of purge */
};

struct range_chunk {
  uint8_t arena;            /* whose lock guards what is below; changes in a forked child only */
  ATOMIC(bool) may_be_huge; /* a range covers it wholly, or it was never used (map/huge.h) */
  uint32_t purged; /* bit per granule: given back to the operating system and not used since */
  struct range ranges[GRANULES_PER_CHUNK];
};

#endif
