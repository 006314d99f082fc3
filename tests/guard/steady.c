/* Two threads that hold a few blocks and replace them, for a second: their magazines never miss. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "api/check.h"

enum { BLOCKS = 8, BYTES = 100, SECONDS = 1 };

static double now(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return (double)moment.tv_sec + (double)moment.tv_nsec * 1e-9;
}

static void *replace(void *unused) {
  char *blocks[BLOCKS] = {NULL};
  (void)unused;
  for (double end = now() + SECONDS; now() < end;) {
    for (unsigned step = 0; step < 1000; step++) {
      free(blocks[step % BLOCKS]);
      blocks[step % BLOCKS] = malloc(BYTES);
      CHECK(blocks[step % BLOCKS] != NULL);
      blocks[step % BLOCKS][0] = 1;
    }
  }
  for (unsigned index = 0; index < BLOCKS; index++) {
    free(blocks[index]);
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, replace, NULL) == 0);
  replace(NULL);
  CHECK(pthread_join(thread, NULL) == 0);
  return 0;
}
