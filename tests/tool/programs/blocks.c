/* blocks [-r] SIZE:COUNT ...: begun, allocated (COUNT blocks of each SIZE), freed (every second one; -r:
 * by another thread), aborted. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "steps.h"

enum { LISTS_MAX = 64, BLOCKS_MAX = 100000 };

struct list {
  size_t size;
  unsigned count;
  void *blocks[BLOCKS_MAX];
};
static struct list lists[LISTS_MAX]; /* no memory of malloc */
static int list_count;

static void allocate(void) {
  for (struct list *list = lists; list < lists + list_count; list++)
    for (unsigned i = 0; i < list->count; i++)
      if (!(list->blocks[i] = malloc(list->size))) abort();
}

static void *free_half(void *unused) {
  for (struct list *list = lists; list < lists + list_count; list++)
    for (unsigned i = 0; i < list->count; i += 2) free(list->blocks[i]);
  return unused;
}

static void free_half_in_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, free_half, NULL) || pthread_join(thread, NULL)) abort();
}

int main(int argc, char **argv) {
  int is_remote = argc > 1 && !strcmp(argv[1], "-r");
  for (int i = 1 + is_remote; i < argc && list_count < LISTS_MAX; i++, list_count++)
    if (sscanf(argv[i], "%zu:%u", &lists[list_count].size, &lists[list_count].count) != 2) return 2;
  if (is_remote)
    free_half_in_thread(); /* nothing yet; what the C library allocates for a thread stays */
  step("begun");
  allocate();
  step("allocated");
  is_remote ? free_half_in_thread() : (void)free_half(NULL);
  step("freed");
  abort();
}
