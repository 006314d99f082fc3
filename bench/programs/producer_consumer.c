/* SPDX-License-Identifier: MIT
 *
 * producer_consumer: a pipeline.  Producers allocate and write blocks, consumers free them and never
 * allocate: every free is remote, and the freeing thread never comes by the allocator for anything
 * else.  Blocks travel in batches of 100 through bounded queues, so that their locks are a small
 * part of the time.
 *   1:1    pairs of a producer and a consumer with a queue of their own
 *   1:n    one producer, all other threads consume from its queue
 *   n:1    one consumer, all other threads produce for its queue
 *   ring   every thread allocates for the next one and frees what the one before allocated
 * One operation is one malloc and one free.
 *
 *   --topology 1:1|1:n|n:1|ring (1:1)  --threads N (2, all together)  --min BYTES (16)
 *   --max BYTES (512)  --queue BATCHES (64)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <stdbool.h>

enum { BATCH_BLOCKS = 100 };
enum { TOPOLOGY_PAIRS, TOPOLOGY_FAN_OUT, TOPOLOGY_FAN_IN, TOPOLOGY_RING };
static const char *const topology_names[] = {"1:1", "1:n", "n:1", "ring", NULL};

struct batch {
  unsigned char *blocks[BATCH_BLOCKS];
};

/* A ring of batches.  `taken` and `put` only grow; put - taken batches are waiting. */
struct queue {
  alignas(128) pthread_mutex_t lock;
  pthread_cond_t not_full, not_empty;
  struct batch *ring;
  uint64_t put, taken;
  uint64_t producers_left;
};

/* The queues that a thread takes from and puts into; one of them may be NULL. */
struct role {
  struct queue *in, *out;
};

static struct queue *queues;
static size_t topology = TOPOLOGY_PAIRS;
static uint64_t threads = 2, min_size = 16, max_size = 512, queue_batches = 64;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_CHOICE("topology", topology, topology_names, "producers : consumers, or a ring of both"),
    ARG_COUNT("threads", threads, 2, ARGS_THREADS_MAX, "threads, all together"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("queue", queue_batches, 1, 1 << 20, "batches of 100 blocks that may wait"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"producer_consumer",
                                   "Producers allocate blocks, consumers free them.", args,
                                   sizeof args / sizeof args[0]};

static void queue_put(struct queue *queue, const struct batch *batch) {
  pthread_mutex_lock(&queue->lock);
  while (queue->put - queue->taken == queue_batches) {
    pthread_cond_wait(&queue->not_full, &queue->lock);
  }
  queue->ring[queue->put++ % queue_batches] = *batch;
  pthread_cond_signal(&queue->not_empty);
  pthread_mutex_unlock(&queue->lock);
}

/* False when the queue is empty and no producer is left. */
static bool queue_take(struct queue *queue, struct batch *batch) {
  pthread_mutex_lock(&queue->lock);
  while (queue->put == queue->taken && queue->producers_left > 0) {
    pthread_cond_wait(&queue->not_empty, &queue->lock);
  }
  bool some = queue->put != queue->taken;
  if (some) {
    *batch = queue->ring[queue->taken++ % queue_batches];
    pthread_cond_signal(&queue->not_full);
  }
  pthread_mutex_unlock(&queue->lock);
  return some;
}

static void queue_producer_leaves(struct queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->producers_left--;
  pthread_cond_broadcast(&queue->not_empty);
  pthread_mutex_unlock(&queue->lock);
}

static void produce(struct worker *worker, struct queue *queue) {
  struct batch batch;
  for (int i = 0; i < BATCH_BLOCKS; i++) {
    size_t size = rng_between(&worker->rng, min_size, max_size);
    batch.blocks[i] = block_new(size);
    touch_ends(batch.blocks[i], size);
  }
  queue_put(queue, &batch);
  worker->tally.mallocs += BATCH_BLOCKS;
}

/* Reads each block before it frees it, as a consumer would.  False when nothing comes any more. */
static bool consume(struct worker *worker, struct queue *queue) {
  struct batch batch;
  if (!queue_take(queue, &batch)) {
    return false;
  }
  for (int i = 0; i < BATCH_BLOCKS; i++) {
    if (batch.blocks[i][0] != 1) {
      give_up("a block lost its content");
    }
    free(batch.blocks[i]);
  }
  worker->tally.frees += BATCH_BLOCKS;
  return true;
}

static struct role role_of(uint64_t index) {
  struct role produces = {.in = NULL, .out = queues}, consumes = {.in = queues, .out = NULL};
  switch (topology) {
    case TOPOLOGY_FAN_OUT: return index == 0 ? produces : consumes;
    case TOPOLOGY_FAN_IN: return index == 0 ? consumes : produces;
    case TOPOLOGY_RING:
      return (struct role){.in = &queues[(index + threads - 1) % threads], .out = &queues[index]};
    default: /* pairs */
      produces.out = consumes.in = &queues[index / 2];
      return index % 2 == 0 ? produces : consumes;
  }
}

/* A thread with both queues first puts half a queue, so that a ring need not keep step. */
static void work(struct worker *worker) {
  struct role role = role_of(worker->index);
  bool both = role.in != NULL && role.out != NULL;

  team_begin(worker);
  for (uint64_t i = 0; both && i < queue_batches / 2; i++) {
    produce(worker, role.out);
  }
  if (role.out != NULL) {
    do {
      produce(worker, role.out);
      if (both) {
        consume(worker, role.in);
      }
    } while (!measure_expired());
    queue_producer_leaves(role.out);
  }
  while (role.in != NULL && consume(worker, role.in)) {
  }
  worker->tally.ops = worker->tally.frees;
  team_end(worker);
}

static void make_queues(void) {
  queues = own_pages(threads * sizeof *queues); /* more than some topologies need */
  for (uint64_t i = 0; i < threads; i++) {
    struct role role = role_of(i);
    if (role.out != NULL) {
      role.out->producers_left++;
    }
    pthread_mutex_init(&queues[i].lock, NULL);
    pthread_cond_init(&queues[i].not_full, NULL);
    pthread_cond_init(&queues[i].not_empty, NULL);
    queues[i].ring = own_pages(queue_batches * sizeof *queues[i].ring);
  }
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  if (topology == TOPOLOGY_PAIRS && threads % 2 != 0) {
    args_refuse(&usage, "pairs need an even number of threads");
  }
  make_queues();
  struct tally tally = team_run(threads, seconds, work);
  measure_report(usage.program, &tally, "topology=%s threads=%llu min=%llu max=%llu queue=%llu",
                 topology_names[topology], (unsigned long long)threads,
                 (unsigned long long)min_size, (unsigned long long)max_size,
                 (unsigned long long)queue_batches);
  return 0;
}
