/* crowd COUNT: so many threads, each with blocks of its own, all alive and idle. */
#include <pthread.h>
#include <stdlib.h>

#include "steps.h"

static pthread_barrier_t barrier;

static void *work(void *unused) {
  void *blocks[96];
  for (int i = 0; i < 600; i++) free(malloc(16)); /* it gets no more without a heap */
  for (int i = 0; i < 96; i++) blocks[i] = malloc(16u << i % 10);
  for (int i = 0; i < 96; i += 2) free(blocks[i]);
  pthread_barrier_wait(&barrier);
  pause();
  return unused;
}

int main(int argc, char **argv) {
  unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_barrier_init(&barrier, NULL, count + 1);
  for (unsigned i = 0; i < count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, work, NULL)) return 1;
  }
  pthread_barrier_wait(&barrier);
  step("ready");
  return 0;
}
