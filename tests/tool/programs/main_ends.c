/* The main thread ends before the others: the process goes on under the number of a zombie.  Prints "ready" when it has. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1000, BLOCKS = 5000 };

static pthread_t first;
void *kept[BLOCKS]; /* not static: what nobody reads would be left out */

static void *goes_on(void *unused) {
  (void)unused;
  pthread_join(first, NULL);
  for (int which = 0; which < BLOCKS; which++)
    memset(kept[which] = malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
  puts("ready");
  fflush(stdout);
  for (;;) {
    free(malloc(BLOCK_BYTES));
    free(malloc(BLOCK_BYTES * BLOCK_BYTES));
    usleep(1000);
  }
  return NULL;
}

int main(void) {
  pthread_t other;
  first = pthread_self();
  pthread_create(&other, NULL, goes_on, NULL);
  pthread_exit(NULL);
}
