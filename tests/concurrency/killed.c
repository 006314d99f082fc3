/* A mixed load by four threads that does not end: somebody kills it.  Says "ready" when all run. */
#include "concurrency/shadow.h"

enum { WORKERS = 4, WARM_STEPS = 200 };

static pthread_barrier_t all_run;

static void *work(void *seed) {
  uint64_t random = random_seed((size_t)seed);
  for (size_t i = 0; i < WARM_STEPS; i++) shadow_step(&random);
  pthread_barrier_wait(&all_run);
  for (;;) shadow_step(&random);
  return NULL;
}

int main(void) {
  CHECK(pthread_barrier_init(&all_run, NULL, WORKERS + 1) == 0);
  for (size_t i = 0; i < WORKERS; i++) thread_start(work, (void *)i);
  pthread_barrier_wait(&all_run);
  CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
  for (;;) pause();
}
