/* hak_thread_idle() at any time: without a heap, with live blocks, which stay as they are, and again and again. */
#include <pthread.h>
#include <string.h>

#include "api/check.h"
#include "api/sizes.h"
#include "hakmem/hakmem.h"

static void *serve(void *unused) {
  static const size_t sizes[] = {16, KIB, 20 * KIB, 100 * KIB, 3 * MIB};
  hak_thread_idle();
  for (unsigned round = 0; round < 20; round++) {
    char *blocks[COUNT_OF(sizes)];
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
      CHECK((blocks[i] = hak_malloc(sizes[i])) != NULL);
      memset(blocks[i], (int)(round + i), sizes[i]);
      hak_free(hak_malloc(sizes[i]));
    }
    hak_thread_idle();
    hak_thread_idle();
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
      CHECK(blocks[i][0] == (char)(round + i) && blocks[i][sizes[i] - 1] == (char)(round + i));
      hak_free(blocks[i]);
    }
  }
  return unused;
}

int main(void) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  serve(NULL);
  for (size_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, serve, NULL) == 0);
  for (size_t i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  return 0;
}
