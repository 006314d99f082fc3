/* blocks [-r] [-w TIB] SIZE:COUNT ...: begun, allocated (COUNT blocks of each SIZE), freed (every
 * second one; -r: by another thread), aborted.  -w: each size meets others' memory, so many TiB of
 * it behind what hakmem has. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "steps.h"

enum { LISTS_MAX = 64, BLOCKS_MAX = 100000 };

struct list {
  size_t size;
  unsigned count;
  void *blocks[BLOCKS_MAX];
};
static struct list lists[LISTS_MAX]; /* no memory of malloc */
static int list_count;

static size_t wall_bytes;
static uintptr_t highest;

/* Where nothing is behind the highest block; what is more than a few chunks long there is a wall
 * already. */
static void build_wall(void) {
  const uintptr_t chunk_bytes = 1 << 21, first = (highest | (chunk_bytes - 1)) + 1;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  for (uintptr_t at = first; at < first + 32 * chunk_bytes; at += chunk_bytes) {
    if (mmap((void *)at, wall_bytes, PROT_NONE, flags, -1, 0) != MAP_FAILED) return;
    if (errno != EEXIST) abort();
  }
}

static void allocate(void) {
  for (struct list *list = lists; list < lists + list_count; list++) {
    if (wall_bytes && highest) build_wall();
    for (unsigned i = 0; i < list->count; i++) {
      if (!(list->blocks[i] = malloc(list->size))) abort();
      if ((uintptr_t)list->blocks[i] > highest) highest = (uintptr_t)list->blocks[i];
    }
  }
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
  int is_walled = argc > 2 && !strcmp(argv[1], "-w");
  if (is_walled) wall_bytes = strtoul(argv[2], NULL, 10) << 40;
  for (int i = 1 + is_remote + 2 * is_walled; i < argc && list_count < LISTS_MAX; i++, list_count++)
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
