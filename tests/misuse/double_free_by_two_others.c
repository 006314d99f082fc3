/* Two threads free the block of a third. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "misuse/hide.h"

static void *body(void *block) {
  free(hide(block));
  return NULL;
}

int main(void) {
  void *block = malloc(5000);
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, body, hide(block));
    pthread_join(thread, NULL);
  }
  _exit(0);
}
