/* Four threads run into RLIMIT_AS (512 MiB) together, again and again, each with its size; then one
 * finds memory usable. */
#include "api/sizes.h"
#include "concurrency/threads.h"
#include "failure/chain.h"
#include "failure/limit.h"

enum { THREADS = 4, ROUNDS = 8, LIMIT_MIB = 512 };

static pthread_barrier_t barrier;

static void *body(void *number) {
  static const size_t sizes[THREADS] = {200, 6000, 100 * KIB, 2 * MIB};
  size_t size = sizes[(size_t)number];
  for (int round = 0; round < ROUNDS; round++) {
    chain_link *chain = NULL;
    chain_grow(&chain, size);
    chain_thin(&chain, size, 3);
    chain_grow(&chain, size);
    pthread_barrier_wait(&barrier);
    chain_free(&chain, size);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

int main(int argc, char **argv) {
  (void)argc;
  limit_and_restart(argv, RLIMIT_AS, LIMIT_MIB * MIB);
  pthread_t threads[THREADS];
  pthread_attr_t small_stack = threads_with_stacks_of(256 * KIB);
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
  for (size_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], &small_stack, body, (void *)i) == 0);
  for (size_t i = 0; i < THREADS; i++) thread_join(threads[i]);
  chain_link *chain = NULL;
  size_t count = chain_grow(&chain, 20000);
  CHECK_MSG(count * 20000 >= LIMIT_MIB * MIB / 2, "%zu blocks", count);
  chain_free(&chain, 20000);
  return 0;
}
