/* The owner frees it, and then another thread does. */
#include <pthread.h>
#include <stdlib.h>

#include "misuse/hide.h"

static void *body(void *block) {
  free(hide(block));
  return NULL;
}

int main(void) {
  pthread_t thread;
  void *block = malloc(64);
  free(hide(block));
  pthread_create(&thread, NULL, body, hide(block));
  pthread_join(thread, NULL);
  return 0;
}
