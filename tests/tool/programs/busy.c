/* Threads that allocate, free, and free each other's blocks, for the seconds given. If their number
 * is given each makes FEW blocks, which one ring of a trace has room for, and waits; then all are
 * cancelled. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, THREADS_MAX = 500, SLOTS = 512, BATCH = 200, FEW = 10 };

static void *shared_slots[SLOTS];
static double end_s;
static bool is_few;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t size_of(unsigned random) {
  if (random % 64 == 0) return 40000 + random % 200000;
  return random % 8 ? 16 + random % 500 : 2000 + random % 20000;
}

static void *work(void *seed) {
  unsigned random = (unsigned)(size_t)seed;
  struct timespec pause = {.tv_nsec = 2000000}; /* leaves the machine to others */
  while (now_s() < end_s) {
    for (int i = 0; i < (is_few ? FEW : BATCH); i++) {
      random = random * 1103515245u + 12345u;
      size_t size = size_of(random >> 8);
      void *block = malloc(size);
      if (block) memset(block, 1, size < 64 ? size : 64);
      free(__atomic_exchange_n(&shared_slots[(random >> 4) % SLOTS], block, __ATOMIC_ACQ_REL));
    }
    if (is_few) sleep(60);
    nanosleep(&pause, NULL);
  }
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS_MAX];
  size_t wanted = count > 2 ? (size_t)atoi(arguments[2]) : THREADS;
  is_few = count > 2;
  end_s = now_s() + (count > 1 ? atof(arguments[1]) : 60);
  for (size_t i = 0; i < wanted; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  puts("ready");
  fflush(stdout);
  for (size_t i = 0; is_few && i < wanted; i++) pthread_cancel(threads[i]);
  for (size_t i = 0; i < wanted; i++) pthread_join(threads[i], NULL);
  return 0;
}
