/* The block's thread freed it and ended; then main frees it again. */
#include <pthread.h>
#include <stdlib.h>

#include "misuse/hide.h"

static void *body(void *unused) {
  (void)unused;
  void *block = malloc(64), *hidden = hide(block);
  free(block);
  return hidden;
}

int main(void) {
  pthread_t thread;
  void *block;
  pthread_create(&thread, NULL, body, NULL);
  pthread_join(thread, &block);
  free(block);
  return 0;
}
