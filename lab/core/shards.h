/* SPDX-License-Identifier: MIT
 *
 * shards.h: where the shared lists of blocks are, 7 classes x 8 shards.
 *
 * A block's shard follows from its page and never changes, as in the notes, where it followed from the
 * call site: blocks that one thread frees reach the threads that need them.
 */
#ifndef LAB_SHARDS_H
#define LAB_SHARDS_H

#include "pages.h"

enum {
  SHARD_COUNT = 8,
  BATCH_BLOCKS = 32, /* fetched at once by a thread that has none left */
};

static inline unsigned shard_of(block_id block) {
  return (block >> GRAINS_PER_PAGE_SHIFT) % SHARD_COUNT;
}

#endif
