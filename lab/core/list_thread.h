/* SPDX-License-Identifier: MIT
 *
 * list_thread.h: a thread in front of the sharded lists.  It keeps the blocks of a batch and
 * nothing else: the blocks that it frees go to the shared lists at once.
 */
#ifndef LAB_LIST_THREAD_H
#define LAB_LIST_THREAD_H

#include "recycler.h"
#include "shards.h"

struct list_thread {
  alignas(2 * CACHE_LINE) struct recycled recycled;
  unsigned visits;
  block_id lists[CLASS_COUNT]; /* blocks fetched and not used yet */
};

typedef struct chain fetch_function(unsigned class, unsigned start, struct counters *counters);

static inline block_id list_thread_take(struct list_thread *thread, unsigned class,
                                        fetch_function *fetch) {
  block_id block = thread->lists[class];
  if (block == 0) {
    /* Another shard at each visit, so that none is emptied before the others. */
    unsigned start = thread->recycled.number + thread->visits++;
    block = fetch(class, start, thread->recycled.counters).first;
    if (block == 0) {
      return 0;
    }
  }
  thread->lists[class] = next_of(block);
  return block;
}

/* Blocks that wait in the states of ended threads. */
static inline uint64_t list_threads_count(const struct recycler *recycler) {
  uint64_t count = 0;
  for (const struct recycled *state = recycler->first; state != NULL; state = state->next) {
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
      count += chain_length(((const struct list_thread *)state)->lists[class]);
    }
  }
  return count;
}

#endif
