/* SPDX-License-Identifier: MIT
 *
 * cas_walk.c
 *
 * Hypothesis: without locks no thread waits for another; one compare-and-swap moves a whole batch.
 * Seed:       -3 % against the lists under locks.
 * Reason:     the walk over 32 links stands inside the retry loop and is repeated whenever another
 *             thread pushes or pops meanwhile; the lines of the links bounce as before.
 */
#include "../core/cas_lists.h"
#include "../core/list_thread.h"
#include "all.h"

static struct recycler threads = RECYCLER(struct list_thread);

static void *thread_begin(struct counters *counters) { return recycler_take(&threads, counters); }

static void thread_end(void *state) { recycler_give(&threads, state); }

static struct chain pop_batch(cas_head *head, struct counters *counters) {
  return cas_pop_walk(head, BATCH_BLOCKS, counters);
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

const struct strategy cas_walk = {
    .name = "cas-walk",
    .sentence = "the same lists by compare-and-swap; a batch is one walk inside the retry loop",
    .thread_begin = thread_begin,
    .thread_end = thread_end,
    .take = take,
    .give = give,
    .count_free = count_free,
};
