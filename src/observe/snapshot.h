/* snapshot.h: hakmem's figures at one moment, summed over all heaps.
 *
 * Reading stops nobody: counters are relaxed and each is exact by itself, but two of them may be a few
 * operations apart. */
#ifndef HAK_OBSERVE_SNAPSHOT_H
#define HAK_OBSERVE_SNAPSHOT_H

#include "base/counters.h"

struct snapshot {
  uint64_t counters[COUNTER_COUNT];
  uint64_t os_maps, os_unmaps, os_purges, purged_bytes;
  uint64_t mapped_bytes;     /* SuperSlabs and range chunks */
  uint64_t metadata_bytes;   /* hakmem's own records */
  uint64_t dirty_free_bytes; /* free, but not given back yet */
  uint64_t slab_bytes_out;   /* in blocks of slabs: live, or in magazines and outboxes */
  uint64_t large_live_bytes; /* Large blocks, threads' caches included */
  uint64_t big_live_bytes;
  uint64_t superslabs, superslabs_kept;
};

void snapshot_take(struct snapshot *snapshot);

#endif
