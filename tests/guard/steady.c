/* Two threads that hold a few blocks and replace them: their magazines never miss.  Until three
 * blocks were guarded ones, which tell the size that was asked for, not their class'; a minute at
 * most. */
#include <stdatomic.h>
#include <time.h>

#include "concurrency/threads.h"

enum { BLOCKS = 8, BYTES = 100, WANTED = 3, SECONDS_MAX = 60 };

static _Atomic unsigned guarded;

static double now(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return (double)moment.tv_sec + (double)moment.tv_nsec * 1e-9;
}

static void *replace(void *unused) {
  char *blocks[BLOCKS] = {NULL};
  (void)unused;
  for (double end = now() + SECONDS_MAX; atomic_load(&guarded) < WANTED && now() < end;) {
    for (unsigned step = 0; step < 1000; step++) {
      free(blocks[step % BLOCKS]);
      blocks[step % BLOCKS] = malloc(BYTES);
      CHECK(blocks[step % BLOCKS] != NULL);
      blocks[step % BLOCKS][0] = 1;
      if (malloc_usable_size(blocks[step % BLOCKS]) == BYTES) atomic_fetch_add(&guarded, 1);
    }
  }
  for (unsigned index = 0; index < BLOCKS; index++) free(blocks[index]);
  return NULL;
}

int main(void) {
  pthread_t thread = thread_start(replace, NULL);
  replace(NULL);
  thread_join(thread);
  return 0;
}
