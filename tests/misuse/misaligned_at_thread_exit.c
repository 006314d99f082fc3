/* A misaligned free in a thread: found when the thread ends, while main still waits. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "misuse/hide.h"

static void *body(void *unused) {
  (void)unused;
  char *block = malloc(64);
  free(hide(block + 16));
  return NULL;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, body, NULL);
  pthread_join(thread, NULL);
  _exit(0);
}
