/* Free memory of every kind that a purge returns; then the purge. */
#include <malloc.h>
#include <stdlib.h>

#include "steps.h"

enum { COUNT = 40000, BYTES = 500, KEPT_EVERY = 200, RANGE_BYTES = 6 << 20 };

static void *blocks[COUNT];

static void *written(size_t bytes) {
  void *block = malloc(bytes);
  if (!block) abort();
  return memset(block, 1, bytes);
}

int main(void) {
  void *range = written(RANGE_BYTES);
  for (int i = 0; i < COUNT; i++) blocks[i] = written(BYTES);
  for (int i = 0; i < COUNT; i++)
    if (i % KEPT_EVERY) free(blocks[i]);
  free(range);
  step("freed");
  malloc_trim(0);
  step("purged");
  return 0;
}
