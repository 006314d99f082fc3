/* SPDX-License-Identifier: MIT
 *
 * magazine_64.c
 *
 * Hypothesis: one array of 64 slots for malloc and free alike, backed by two lists (one that serves,
 *             one that collects), keeps all work in the thread.
 * Seed:       -1 %.
 * Reason:     64 is below the batch of the load; blocks that overflow migrate from array to list and back.
 *
 * The shared lists of sharded_mutex back these two.
 */
#include "../core/list_thread.h"
#include "../core/mutex_lists.h"
#include "all.h"

enum {
  SLOTS = 64,
  MIGRATED = SLOTS / 2,
  COLLECTED_MAX = 64, /* more than that goes to the shared lists */
};

struct magazine {
  uint32_t count;
  uint32_t collected_count;
  block_id collected; /* blocks that overflowed; base.lists[] is the list that serves */
  block_id slots[SLOTS];
};

struct thread {
  struct list_thread base;
  struct magazine magazines[CLASS_COUNT];
};

static struct recycler threads = RECYCLER(struct thread);

static void *thread_begin(struct counters *counters) { return recycler_take(&threads, counters); }

static void thread_end(void *state) { recycler_give(&threads, state); }

/* The older half moves to the list that collects; when that is long, some of it goes to the
 * shards. */
static void overflow(struct thread *thread, struct magazine *magazine) {
  for (unsigned i = 0; i < MIGRATED; i++) {
    set_next(magazine->slots[i], magazine->collected);
    magazine->collected = magazine->slots[i];
    magazine->slots[i] = magazine->slots[MIGRATED + i];
  }
  magazine->count -= MIGRATED;
  magazine->collected_count += MIGRATED;
  while (magazine->collected_count > COLLECTED_MAX) {
    block_id block = magazine->collected;
    magazine->collected = next_of(block);
    magazine->collected_count--;
    mutex_lists_push(block, thread->base.recycled.counters);
  }
}

/* The lists change roles when the serving one is empty; then a batch migrates into the array. */
static bool underflow(struct thread *thread, unsigned class) {
  struct magazine *magazine = &thread->magazines[class];
  block_id *serving = &thread->base.lists[class];
  if (*serving == 0) {
    *serving = magazine->collected;
    magazine->collected = 0;
    magazine->collected_count = 0;
  }
  while (magazine->count < MIGRATED) {
    if (*serving == 0 && magazine->count != 0) {
      break;
    }
    block_id block = list_thread_take(&thread->base, class, mutex_lists_fetch);
    if (block == 0) {
      return false;
    }
    magazine->slots[magazine->count++] = block;
  }
  return true;
}

static void *take(void *state, size_t size) {
  struct thread *thread = state;
  unsigned class = class_of(size);
  struct magazine *magazine = &thread->magazines[class];
  if (magazine->count == 0 && !underflow(thread, class)) {
    return NULL;
  }
  return block_of(magazine->slots[--magazine->count]);
}

static void give(void *state, void *block) {
  struct thread *thread = state;
  block_id id = block_id_of(block);
  struct magazine *magazine = &thread->magazines[page_of(id)->class];
  if (magazine->count == SLOTS) {
    overflow(thread, magazine);
  }
  magazine->slots[magazine->count++] = id;
}

static uint64_t count_free(void) {
  uint64_t count = mutex_lists_count() + list_threads_count(&threads);
  for (const struct recycled *state = threads.first; state != NULL; state = state->next) {
    const struct magazine *magazines = ((const struct thread *)state)->magazines;
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
      count += magazines[class].count + chain_length(magazines[class].collected);
    }
  }
  return count;
}

const struct strategy magazine_64 = {
    .name = "magazine-64",
    .sentence = "thread-local array of 64 slots, backed by two lists and by the shared lists",
    .thread_begin = thread_begin,
    .thread_end = thread_end,
    .take = take,
    .give = give,
    .count_free = count_free,
};
