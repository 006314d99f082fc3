/* blocks.h: visits all slabs, and counts the blocks that threads have cached, while threads run.
 *
 * No thread is stopped, no latch taken and no system call made: records of other threads, which are
 * never unmapped, are read as they are. Figures may be some batches apart; at rest they are
 * exact. */
#ifndef HAK_OBSERVE_BLOCKS_H
#define HAK_OBSERVE_BLOCKS_H

#include "slab/slab.h"

/* Called for each slab with its blocks that are free, those that were freed remotely included. */
typedef void slab_visit(void *context, struct slab *slab, const struct slab_shape *shape,
                        unsigned free_blocks);
void blocks_visit_slabs(slab_visit *visit, void *context);

/* In magazines and quarantines. */
struct cached_blocks {
  uint64_t of_class[SLAB_CLASS_COUNT];
  uint64_t range_bytes;
};
void blocks_count_cached(struct cached_blocks *cached);

/* Parts are read one after the other while threads run, and may exceed the whole by a little. */
INLINE uint64_t without_part(uint64_t whole, uint64_t part) {
  return whole > part ? whole - part : 0;
}

#endif
