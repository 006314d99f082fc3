/* Freed twice by a thread that then ends: found there, while main still waits. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "misuse/hide.h"

static void *body(void *unused) {
  (void)unused;
  void *block = malloc(64);
  free(hide(block));
  free(hide(block));
  return NULL;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, body, NULL);
  pthread_join(thread, NULL);
  _exit(0);
}
