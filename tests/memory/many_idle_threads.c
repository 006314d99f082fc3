/* 200 threads have each used 4 MiB of small blocks of eight classes and sleep: what they keep is no
 * more than the 128 KiB a class that a magazine may hold, and their stacks. */
#include <stdatomic.h>

#include "concurrency/threads.h"
#include "memory/blocks.h"

enum { THREADS = 200, BLOCKS = 500, DECAY_MS = 200, KEPT_EACH_KIB = 1152 };

static atomic_uint done;

static void *body(void *unused) {
  static const size_t sizes[] = {16, 64, 128, 256, 512, 1024, 2048, 4096};
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    char *mine[BLOCKS];
    blocks_come_and_go(mine, BLOCKS, sizes[i]);
  }
  atomic_fetch_add(&done, 1);
  for (;;) pause();
  return NULL;
}

int main(void) {
  pthread_attr_t small_stack = threads_with_stacks_of(256 * KIB);
  size_t start_bytes = rss_bytes();
  for (size_t i = 0; i < THREADS; i++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, &small_stack, body, NULL) == 0);
  }
  while (atomic_load(&done) < THREADS) sleep_ms(5);
  sleep_ms(2 * DECAY_MS);
  free(malloc(2 * MIB));
  size_t kept_mib = rss_above_mib(start_bytes), limit_mib = (size_t)THREADS * KEPT_EACH_KIB / 1024;
  CHECK_MSG(kept_mib <= limit_mib, "%zu MiB kept by idle threads", kept_mib);
  return 0;
}
