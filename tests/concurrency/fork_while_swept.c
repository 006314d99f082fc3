/* Forks argv[1] times while two threads start rounds of purging all the time (the test sets
 * HAKMEM_DECAY_MS=0): a round sweeps the forking thread's heap too, and must not be caught doing
 * so. A child that hangs is killed by its alarm. */
#include <stdatomic.h>
#include <stdbool.h>

#include "api/sizes.h"
#include "concurrency/threads.h"

enum { SWEEPERS = 2, SMALL = 200, KEPT = 20000, CHILD_BLOCKS = 500, CHILD_LIMIT_S = 20 };

static atomic_bool stop;
static void *kept[KEPT];

static void use(size_t count, size_t size) {
  void *blocks[CHILD_BLOCKS];
  for (size_t i = 0; i < count; i++) blocks[i] = MUST(malloc(size));
  for (size_t i = 0; i < count; i++) free(blocks[i]);
}

static void *sweep(void *unused) {
  while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
    use(1, 3 * MIB);
    use(SMALL, 100);
  }
  return unused;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  pthread_t sweepers[SWEEPERS];
  /* They make a sweep of this heap take a while. */
  for (size_t i = 0; i < KEPT; i++) kept[i] = MUST(malloc(64));
  for (size_t i = 0; i < SWEEPERS; i++) sweepers[i] = thread_start(sweep, NULL);
  for (size_t i = 0, forks = strtoul(argv[1], NULL, 10); i < forks; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(CHILD_LIMIT_S);
      use(CHILD_BLOCKS, 300);
      _exit(0);
    }
    child_join(pid);
  }
  atomic_store(&stop, true);
  for (size_t i = 0; i < SWEEPERS; i++) thread_join(sweepers[i]);
  for (size_t i = 0; i < KEPT; i++) free(kept[i]);
  return 0;
}
