/* What the C library keeps for a thread lies in no heap that was in use when the thread was
 * started: the thread outlives it, and its stack goes to others. */
#include <threads.h>

#include "api/figures.h"
#include "concurrency/threads.h"

enum { THREADS = 16, ROUNDS = 3 };

static int begin[2];

static int wait_c11(void *unused) {
  char byte;
  (void)unused;
  return read(begin[0], &byte, 1) == 1 ? 0 : 1;
}
static void *wait_for_end(void *unused) {
  CHECK(wait_c11(NULL) == 0);
  return unused;
}

int main(void) {
  CHECK(pipe(begin) == 0);
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t threads[THREADS];
    thrd_t others[THREADS];
    hak_heap *heap = hak_heap_new("short"), *before;
    CHECK(heap != NULL && hak_heap_use(heap, NULL));
    for (size_t i = 0; i < THREADS; i++) {
      threads[i] = thread_start(wait_for_end, NULL);
      CHECK(thrd_create(&others[i], wait_c11, NULL) == thrd_success);
    }
    CHECK(hak_heap_use(heap, &before) && before == heap);
    unsigned long allocations = figures_of(heap).allocations;
    CHECK_MSG(allocations == 0, "%lu", allocations);
    CHECK(hak_heap_destroy(heap));
    for (size_t i = 0; i < 2 * THREADS; i++) CHECK(write(begin[1], "", 1) == 1);
    for (size_t i = 0; i < THREADS; i++) {
      thread_join(threads[i]);
      CHECK(thrd_join(others[i], NULL) == thrd_success);
    }
  }
  return 0;
}
