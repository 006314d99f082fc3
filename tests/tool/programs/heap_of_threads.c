/* heap_of_threads.c: threads meet in one heap, until each keeps some blocks of it. */
#include <pthread.h>
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "steps.h"

enum { THREADS = 8, KEPT = 100, ROUNDS = 5000, BLOCK_BYTES = 100 };

static hak_heap *heap;
/* On a busy machine one would have done its part before the next begins. */
static pthread_barrier_t begin;

static void *live(void *unused) {
  void *blocks[KEPT] = {0};
  pthread_barrier_wait(&begin);
  for (unsigned round = 0; round < ROUNDS; round++)
    for (unsigned place = 0; place < KEPT; place++) {
      free(blocks[place]);
      blocks[place] = hak_heap_malloc(heap, BLOCK_BYTES);
      if (!blocks[place]) _exit(2);
    }
  return unused;
}

int main(void) {
  pthread_t threads[THREADS];
  heap = hak_heap_new("shared");
  pthread_barrier_init(&begin, NULL, THREADS);
  for (unsigned thread = 0; thread < THREADS; thread++)
    if (pthread_create(&threads[thread], NULL, live, NULL)) return 1;
  for (unsigned thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
  step("made");
  return 0;
}
