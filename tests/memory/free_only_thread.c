/* One thread only allocates, another only frees.  argv[1] is the block size. First in batches: 32
 * MiB allocated, all freed by the other, many times.  Then as a stream through a bounded queue.
 * RSS stays near what is live at a time. */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "concurrency/threads.h"
#include "memory/blocks.h"

enum { BATCH_MIB = 32, BATCHES = 20, QUEUE_SLOTS = 1024, STREAM_MIB = 1024, SLACK_MIB = 12 };

static blocks batch;
static atomic_int full; /* 1: the freeing thread's turn */
static atomic_bool over;

static void *queue[QUEUE_SLOTS];
static atomic_size_t written, read_count;

static void *free_only(void *unused) {
  while (!atomic_load(&over)) {
    if (atomic_load(&full)) {
      blocks_free(&batch);
      atomic_store(&full, 0);
    }
    size_t next = atomic_load_explicit(&read_count, memory_order_relaxed);
    while (next < atomic_load_explicit(&written, memory_order_acquire)) {
      free(queue[next++ % QUEUE_SLOTS]);
      atomic_store_explicit(&read_count, next, memory_order_release);
    }
    sched_yield();
  }
  return unused;
}

static void send(size_t size, size_t number) {
  while (number - atomic_load_explicit(&read_count, memory_order_acquire) >= QUEUE_SLOTS)
    sched_yield();
  char *block = MUST(malloc(size));
  block[0] = block[size - 1] = 1;
  queue[number % QUEUE_SLOTS] = block;
  atomic_store_explicit(&written, number + 1, memory_order_release);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  size_t size = strtoul(argv[1], NULL, 10), start_bytes = rss_bytes();
  batch = blocks_table(BATCH_MIB * MIB, size);
  pthread_t thread = thread_start(free_only, NULL);
  for (int i = 0; i < BATCHES; i++) {
    blocks_fill(&batch);
    size_t resident_mib = rss_above_mib(start_bytes);
    CHECK_MSG(resident_mib <= BATCH_MIB * 4 / 3 + SLACK_MIB, "%zu MiB in batch %d", resident_mib,
              i);
    atomic_store(&full, 1);
    while (atomic_load(&full)) sched_yield();
  }
  size_t in_queue_mib = QUEUE_SLOTS * size / MIB, count = STREAM_MIB * MIB / size;
  size_t limit_mib = BATCH_MIB * 4 / 3 + in_queue_mib * 4 / 3 + SLACK_MIB;
  count = count < 2000000 ? count : 2000000;
  for (size_t i = 0; i < count; i++) {
    send(size, i);
    if (i % (count / 16) == 0) {
      size_t resident_mib = rss_above_mib(start_bytes);
      CHECK_MSG(resident_mib <= limit_mib, "%zu MiB after %zu blocks", resident_mib, i);
    }
  }
  while (atomic_load(&read_count) < count) sched_yield();
  atomic_store(&over, true);
  thread_join(thread);
  return 0;
}
