/* Everything that may be done with a block, to blocks that are all guarded: no fault is reported.
 *
 * Threads hand blocks over, free each other's, reallocate, ask for sizes; children of a fork go on
 * with what they inherited. */
#include "api/random.h"
#include "concurrency/threads.h"

enum { THREADS = 4, STEPS = 5000, SHELF = 64, SIZE_MAX_BYTES = 5000, FORKS = 10 };

static char *shelf[SHELF];

static void check_content(const char *block) {
  size_t bytes = malloc_usable_size((void *)block);
  CHECK(bytes > 0 && block[bytes - 1] == block[0]);
}

static char *fill(char *block) {
  CHECK(block != NULL);
  memset(block, (int)((uintptr_t)block >> 4 & 127), malloc_usable_size(block));
  return block;
}

static char *take(uint64_t *random) {
  size_t size = 1 + random_below(random, SIZE_MAX_BYTES);
  void *aligned;
  switch (random_below(random, 5)) {
    case 0: return malloc(size);
    case 1: return realloc(malloc(size / 2), size);
    case 2: return aligned_alloc(64, size);
    case 3:
      CHECK(posix_memalign(&aligned, 256, size) == 0 && (uintptr_t)aligned % 256 == 0);
      return aligned;
    default: break;
  }
  char *block = calloc(1, size);
  for (size_t at = 0; at < size; at++) CHECK(block[at] == 0);
  return block;
}

static void *trade(void *argument) {
  uint64_t random = random_seed((uintptr_t)argument);
  for (unsigned step = 0; step < STEPS; step++) {
    char *mine = fill(take(&random));
    char *other = __atomic_exchange_n(&shelf[random_below(&random, SHELF)], mine, __ATOMIC_ACQ_REL);
    if (other) {
      check_content(other);
      free(other);
    }
  }
  return NULL;
}

static void empty_shelf(void) {
  for (unsigned at = 0; at < SHELF; at++) {
    if (shelf[at]) check_content(shelf[at]);
    free(shelf[at]);
    shelf[at] = NULL;
  }
}

int main(void) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) threads[i] = thread_start(trade, (void *)(i + 1));
  for (unsigned i = 0; i < FORKS; i++) {
    pid_t child = fork();
    if (child == 0) {
      trade((void *)(uintptr_t)(i + 100));
      empty_shelf();
      _exit(0);
    }
    child_join(child);
  }
  for (unsigned i = 0; i < THREADS; i++) thread_join(threads[i]);
  empty_shelf();
  return 0;
}
