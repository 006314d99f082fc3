/* A thread frees much, in no order, and then finds all it wants in its magazines: it comes to no
 * slow path.  The blocks that rest there pin slabs all over; they go home all the same, and RSS
 * comes down. The test sets HAKMEM_DECAY_MS=200. */
#include "api/random.h"
#include "concurrency/threads.h"
#include "memory/blocks.h"
#include "memory/pages.h"

enum { BLOCK_BYTES = 224, LIMIT_MS = 8000, TURN_MS = 10, LEFT_MIB = 1, USED_MIB = 24 };

static pthread_barrier_t barrier;

static void *wait_with_a_heap(void *unused) {
  void *volatile block = malloc(100);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  free(block);
  return unused;
}

static void shuffle(blocks *table) {
  uint64_t random = random_seed(1);
  for (size_t i = table->count; i > 1; i--) {
    size_t other = random_below(&random, i);
    void *block = table->at[i - 1];
    table->at[i - 1] = table->at[other];
    table->at[other] = block;
  }
}

static void hit(void) {
  for (int i = 0; i < 10; i++) {
    void *volatile block = MUST(malloc(BLOCK_BYTES / 2));
    free(block);
  }
}

int main(void) {
  CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
  pthread_t other = thread_start(wait_with_a_heap, NULL);
  pthread_barrier_wait(&barrier);
  hit();
  blocks table = blocks_table(USED_MIB * MIB, BLOCK_BYTES);
  size_t before = rss_bytes();
  blocks_fill(&table);
  shuffle(&table);
  blocks_free(&table);
  size_t now = 0, left_bytes = LEFT_MIB * MIB + more_for_records(USED_MIB * MIB);
  for (int waited_ms = 0; waited_ms < LIMIT_MS; waited_ms += TURN_MS) {
    hit();
    usleep(TURN_MS * 1000);
    now = rss_bytes();
    if (waited_ms > LIMIT_MS / 8 && now < before + left_bytes) break;
  }
  CHECK_MSG(now < before + left_bytes, "%zu KiB are left", (now - before) / 1024);
  pthread_barrier_wait(&barrier);
  thread_join(other);
  return 0;
}
