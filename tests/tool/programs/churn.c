/* churn THREADS BLOCKS SIZE: each thread has so many blocks all the time, and never stops replacing
 * them; every other one is freed by another thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "steps.h"

enum { SLOTS_MAX = 1 << 20 };

static _Atomic(void *) slots[SLOTS_MAX];
static unsigned thread_count, blocks_per_thread;
static size_t size;

static void *work(void *argument) {
  unsigned long random = (unsigned long)argument + 1;
  unsigned all = thread_count * blocks_per_thread;
  for (;;) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    free(atomic_exchange(&slots[(random >> 33) % all], malloc(size)));
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  thread_count = (unsigned)atoi(argv[1]);
  blocks_per_thread = (unsigned)atoi(argv[2]);
  size = (size_t)atoi(argv[3]);
  if (thread_count * blocks_per_thread > SLOTS_MAX) return 2;
  for (unsigned i = 0; i < thread_count * blocks_per_thread; i++) slots[i] = malloc(size);
  for (unsigned long i = 0; i < thread_count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void *)i)) return 1;
  }
  step("ready");
  return 0;
}
