/* The main thread ends before the others: the process goes on under the number of a zombie.  Prints "ready" when it has;
   with an argument before it does, which is at SIGUSR1. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1000, BLOCKS = 5000 };

static pthread_t first;
void *kept[BLOCKS]; /* not static: what nobody reads would be left out */

static void *goes_on(void *unused) {
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
  return unused;
}

static void wait_for_signal(const sigset_t *set) {
  int number;
  puts("ready");
  fflush(stdout);
  sigwait(set, &number);
}

int main(int count, char **words) {
  (void)words;
  pthread_t other;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  first = pthread_self();
  pthread_create(&other, NULL, goes_on, NULL);
  if (count > 1) wait_for_signal(&set);
  pthread_exit(NULL);
}
