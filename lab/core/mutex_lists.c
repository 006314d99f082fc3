/* SPDX-License-Identifier: MIT
 *
 * mutex_lists.c: see mutex_lists.h.
 */
#include "mutex_lists.h"

#include "futex_lock.h"

struct shard {
  alignas(2 * CACHE_LINE) struct futex_lock lock;
  _Atomic block_id
      first; /* written under the lock; a look from outside spares an empty shard's lock */
};

static struct shard shards[CLASS_COUNT][SHARD_COUNT];

void mutex_lists_push(block_id block, struct counters *counters) {
  struct shard *shard = &shards[page_of(block)->class][shard_of(block)];
  lock_take(&shard->lock, counters);
  set_next(block, atomic_load_explicit(&shard->first, memory_order_relaxed));
  atomic_store_explicit(&shard->first, block, memory_order_relaxed);
  lock_give(&shard->lock, counters);
}

static struct chain pop_batch(struct shard *shard, struct counters *counters) {
  lock_take(&shard->lock, counters);
  block_id first = atomic_load_explicit(&shard->first, memory_order_relaxed);
  struct chain chain = chain_cut(&first, BATCH_BLOCKS);
  atomic_store_explicit(&shard->first, first, memory_order_relaxed);
  lock_give(&shard->lock, counters);
  return chain;
}

struct chain mutex_lists_fetch(unsigned class, unsigned start, struct counters *counters) {
  for (unsigned i = 0; i < SHARD_COUNT; i++) {
    struct shard *shard = &shards[class][(start + i) % SHARD_COUNT];
    if (atomic_load_explicit(&shard->first, memory_order_relaxed) == 0) {
      continue;
    }
    struct chain chain = pop_batch(shard, counters);
    if (chain.count != 0) {
      counters->reuses++;
      return chain;
    }
  }
  struct chain chain = {0, 0, 0};
  page_make(class, counters, &chain);
  return chain;
}

uint64_t mutex_lists_count(void) {
  uint64_t count = 0;
  for (unsigned i = 0; i < CLASS_COUNT * SHARD_COUNT; i++) {
    count += chain_length(shards[i / SHARD_COUNT][i % SHARD_COUNT].first);
  }
  return count;
}
