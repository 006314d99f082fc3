/* traced: known blocks at known sizes, for hakmem trace.  Two threads; what one allocates the
 * other frees, HANDED of 3,000 bytes; KEPT of 700 stay; one grows in place and by moves to GROWN
 * bytes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "steps.h"

enum { HANDED = 20000, KEPT = 500, BEFORE = 300, GROWN = 5 << 20 };

static void *blocks[HANDED], *kept[KEPT + BEFORE];
static pthread_barrier_t barrier;

static void *take(void *unused) {
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < HANDED; i++) memset(blocks[i] = malloc(3000), 1, 3000);
  pthread_barrier_wait(&barrier);
  return unused;
}

int main(void) {
  pthread_t thread;
  for (int i = 0; i < BEFORE; i++) kept[KEPT + i] = malloc(10000);
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, take, NULL);
  step("ready");
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < HANDED; i++) free(blocks[i]);
  for (int i = 0; i < KEPT; i++) kept[i] = malloc(700);
  for (int i = 0; i < BEFORE / 2; i++) free(kept[KEPT + i]);
  char *grown = NULL;
  for (size_t size = 40000; size <= GROWN; size += 40000) grown = realloc(grown, size);
  step("done");
  return grown == NULL;
}
