/* Two threads that allocate small blocks all the time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;

static void *work(void *announced) {
  for (int early = 0; early < 1000; early++) { /* a thread's first calls need no heap */
    kept = malloc(16);
    free(kept);
  }
  for (unsigned turn = 0;; turn++) {
    void *block = malloc(16u << turn % 4);
    kept = block;
    if (announced && turn == 100) puts("ready"), fflush(stdout);
    free(block);
    usleep(1000);
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, "")) return 1;
  work(NULL);
}
