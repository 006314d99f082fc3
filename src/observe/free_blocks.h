/* free_blocks.h: blocks that the program does not hold, class by class: walked, for glibc's questions alone.
 *
 * No thread is stopped, no latch taken and no system call made: records of other threads, which are never
 * unmapped, are copied as they are (base/peek.h).  While threads run, figures may be some batches apart; at
 * rest they are exact.  Visits every slab. */
#ifndef HAK_OBSERVE_FREE_BLOCKS_H
#define HAK_OBSERVE_FREE_BLOCKS_H

#include "map/size_class.h"

struct free_blocks {
  uint64_t in_slabs
      [CLASS_COUNT]; /* those that other threads freed included; none above the slab classes */
  uint64_t in_caches[CLASS_COUNT]; /* magazines, remote-free buffers and quarantines */
  uint64_t slab_bytes_out;         /* of blocks in no slab: live, or in caches */
};

void free_blocks_count(struct free_blocks *found);

#endif
