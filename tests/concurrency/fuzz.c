/* Random calls by several generations of threads against a shadow model (shadow.h).
 * Arguments: seed, generations, threads, operations per thread. */
#include "concurrency/shadow.h"

enum { MAX_THREADS = 16 };

static size_t operations;

static void *body(void *seed) {
  uint64_t random = random_seed((size_t)seed);
  for (size_t i = 0; i < operations; i++) shadow_step(&random);
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 5);
  size_t seed = strtoul(argv[1], NULL, 10), generations = strtoul(argv[2], NULL, 10);
  size_t threads = strtoul(argv[3], NULL, 10);
  operations = strtoul(argv[4], NULL, 10);
  CHECK(threads > 0 && threads <= MAX_THREADS);
  for (size_t generation = 0; generation < generations; generation++) {
    pthread_t running[MAX_THREADS];
    for (size_t i = 0; i < threads; i++)
      running[i] = thread_start(body, (void *)((seed << 20) + generation * MAX_THREADS + i));
    for (size_t i = 0; i < threads; i++) thread_join(running[i]);
  }
  shadow_release_all();
  return 0;
}
