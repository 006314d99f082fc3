/* SPDX-License-Identifier: MIT
 *
 * global_cache.c
 *
 * Hypothesis: a small global table, class -> the page (here: its free blocks) to allocate from next, is
 * found by one load and spares the way through the lists.
 * Seed:       -3 ... -8 %.
 * Reason:     all threads write to it (contention), and its words lie side by side (false sharing).
 *
 * The table takes the place of the batches that a thread keeps to itself in sharded_mutex: a thread
 * that finds it empty fetches a batch, or makes a page, for all.  Its seven words share a cache line,
 * as in a table that is laid out without a second thought; that is the experiment.
 */
#include "../core/cas_lists.h"
#include "../core/list_thread.h"
#include "../core/mutex_lists.h"
#include "all.h"

static alignas(CACHE_LINE) cas_head direct[CLASS_COUNT];
static struct recycler threads = RECYCLER(struct list_thread);

static void *thread_begin(struct counters *counters) { return recycler_take(&threads, counters); }

static void thread_end(void *state) { recycler_give(&threads, state); }

/* One block for the caller, the rest for all. */
static block_id refill(struct list_thread *thread, unsigned class) {
  unsigned start = thread->recycled.number + thread->visits++;
  struct chain chain = mutex_lists_fetch(class, start, thread->recycled.counters);
  if (chain.count > 1) {
    struct chain rest = {next_of(chain.first), chain.last, chain.count - 1};
    cas_push(&direct[class], rest, thread->recycled.counters);
  }
  return chain.first;
}

static void *take(void *state, size_t size) {
  struct list_thread *thread = state;
  unsigned class = class_of(size);
  block_id block = cas_pop_one(&direct[class], thread->recycled.counters);
  if (block == 0) {
    block = refill(thread, class);
  }
  return block == 0 ? NULL : block_of(block);
}

static void give(void *state, void *block) {
  const struct list_thread *thread = state;
  mutex_lists_push(block_id_of(block), thread->recycled.counters);
}

static uint64_t count_free(void) {
  uint64_t count = mutex_lists_count();
  for (unsigned class = 0; class < CLASS_COUNT; class ++) {
    count += chain_length((block_id)direct[class]);
  }
  return count;
}

const struct strategy global_cache = {
    .name = "global-cache",
    .sentence = "sharded-mutex with one global table of blocks in place of the threads' batches",
    .thread_begin = thread_begin,
    .thread_end = thread_end,
    .take = take,
    .give = give,
    .count_free = count_free,
};
