/* SPDX-License-Identifier: MIT
 *
 * cas_singles.c
 *
 * Hypothesis: cas_walk repeats a long walk when it collides; pops of one block each repeat nothing.
 * Seed:       -6.6 % against the lists under locks.
 * Reason:     32 compare-and-swaps on a line that others write to cost more than one walk.
 */
#include "../core/cas_lists.h"
#include "../core/list_thread.h"
#include "all.h"

static struct recycler threads = RECYCLER(struct list_thread);

static void *thread_begin(struct counters *counters) { return recycler_take(&threads, counters); }

static void thread_end(void *state) { recycler_give(&threads, state); }

static struct chain pop_batch(cas_head *head, struct counters *counters) {
  struct chain chain = {0, 0, 0};
  while (chain.count < BATCH_BLOCKS) {
    block_id block = cas_pop_one(head, counters);
    if (block == 0) {
      break;
    }
    set_next(block, chain.first);
    chain.first = block;
    chain.last = chain.count == 0 ? block : chain.last;
    chain.count++;
  }
  return chain;
}

static struct chain fetch(unsigned class, unsigned start, struct counters *counters) {
  return cas_lists_fetch(class, start, pop_batch, counters);
}

static void *take(void *state, size_t size) {
  block_id block = list_thread_take(state, class_of(size), fetch);
  return block == 0 ? NULL : block_of(block);
}

static void give(void *state, void *block) {
  const struct list_thread *thread = state;
  cas_lists_push(block_id_of(block), thread->recycled.counters);
}

static uint64_t count_free(void) { return cas_lists_count() + list_threads_count(&threads); }

const struct strategy cas_singles = {
    .name = "cas-singles",
    .sentence = "the same lists by compare-and-swap; a batch is 32 single pops",
    .thread_begin = thread_begin,
    .thread_end = thread_end,
    .take = take,
    .give = give,
    .count_free = count_free,
};
