/* SPDX-License-Identifier: MIT
 *
 * producer_consumer: a pipeline.  Producers allocate and write blocks, consumers free them and never
 * allocate: every free is remote, and the freeing thread never comes by the allocator for anything
 * else.  Blocks travel in batches of 100 through one bounded queue, so that its lock is a small
 * part of the time.
 * One operation is one malloc and one free.
 *
 *   --producers N (1)  --consumers N (1)  --min BYTES (16)  --max BYTES (512)
 *   --queue BATCHES (64)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <stdbool.h>

enum { BATCH_BLOCKS = 100 };

struct batch {
  unsigned char *blocks[BATCH_BLOCKS];
};

/* A ring of batches.  `taken` and `put` only grow; put - taken batches are waiting. */
struct queue {
  pthread_mutex_t lock;
  pthread_cond_t not_full, not_empty;
  struct batch *ring;
  uint64_t put, taken;
  uint64_t producers_left;
};

static struct queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .not_full = PTHREAD_COND_INITIALIZER,
                             .not_empty = PTHREAD_COND_INITIALIZER};

static uint64_t producers = 1, consumers = 1, min_size = 16, max_size = 512, queue_batches = 64;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("producers", producers, 1, ARGS_THREADS_MAX, "threads that allocate"),
    ARG_COUNT("consumers", consumers, 1, ARGS_THREADS_MAX, "threads that free"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("queue", queue_batches, 1, 1 << 20, "batches of 100 blocks that may wait"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"producer_consumer",
                                   "Producers allocate blocks, consumers free them.", args,
                                   sizeof args / sizeof args[0]};

static void queue_put(const struct batch *batch) {
  pthread_mutex_lock(&queue.lock);
  while (queue.put - queue.taken == queue_batches) {
    pthread_cond_wait(&queue.not_full, &queue.lock);
  }
  queue.ring[queue.put++ % queue_batches] = *batch;
  pthread_cond_signal(&queue.not_empty);
  pthread_mutex_unlock(&queue.lock);
}

/* False when the queue is empty and no producer is left. */
static bool queue_take(struct batch *batch) {
  pthread_mutex_lock(&queue.lock);
  while (queue.put == queue.taken && queue.producers_left > 0) {
    pthread_cond_wait(&queue.not_empty, &queue.lock);
  }
  bool some = queue.put != queue.taken;
  if (some) {
    *batch = queue.ring[queue.taken++ % queue_batches];
    pthread_cond_signal(&queue.not_full);
  }
  pthread_mutex_unlock(&queue.lock);
  return some;
}

static void producer_leaves(void) {
  pthread_mutex_lock(&queue.lock);
  queue.producers_left--;
  pthread_cond_broadcast(&queue.not_empty);
  pthread_mutex_unlock(&queue.lock);
}

static void produce(struct worker *worker) {
  struct batch batch;
  do {
    for (int i = 0; i < BATCH_BLOCKS; i++) {
      size_t size = rng_between(&worker->rng, min_size, max_size);
      batch.blocks[i] = block_new(size);
      touch_ends(batch.blocks[i], size);
    }
    queue_put(&batch);
    worker->tally.mallocs += BATCH_BLOCKS;
  } while (!measure_expired());
  producer_leaves();
}

/* Reads each block before it frees it, as a consumer would. */
static void consume(struct worker *worker) {
  struct batch batch;
  while (queue_take(&batch)) {
    for (int i = 0; i < BATCH_BLOCKS; i++) {
      if (batch.blocks[i][0] != 1) {
        fputs("benchmark: a block lost its content\n", stderr);
        _exit(1);
      }
      free(batch.blocks[i]);
    }
    worker->tally.frees += BATCH_BLOCKS;
  }
  worker->tally.ops = worker->tally.frees;
}

static void work(struct worker *worker) {
  team_begin(worker);
  if (worker->index < producers) {
    produce(worker);
  } else {
    consume(worker);
  }
  team_end(worker);
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  queue.ring = own_pages(queue_batches * sizeof *queue.ring);
  queue.producers_left = producers;
  struct tally tally = team_run(producers + consumers, seconds, work);
  measure_report(
      usage.program, &tally, "producers=%llu consumers=%llu min=%llu max=%llu queue=%llu",
      (unsigned long long)producers, (unsigned long long)consumers, (unsigned long long)min_size,
      (unsigned long long)max_size, (unsigned long long)queue_batches);
  return 0;
}
