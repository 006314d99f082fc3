/* A pointer into another thread's block. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "misuse/hide.h"

static void *body(void *block) {
  free(hide((char *)block + 16));
  return NULL;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, body, malloc(64));
  pthread_join(thread, NULL);
  _exit(0);
}
