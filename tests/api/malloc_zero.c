/* malloc(0) and calloc of nothing: non-null, different from every other live block, freeable. */
#include "api/check.h"

enum { BLOCKS = 1000 };

static int by_address(const void *a, const void *b) {
  const char *left = *(char *const *)a, *right = *(char *const *)b;
  return (left > right) - (left < right);
}

int main(void) {
  static void *blocks[4 * BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[4 * i] = malloc(0);
    blocks[4 * i + 1] = calloc(0, 8);
    blocks[4 * i + 2] = calloc(8, 0);
    blocks[4 * i + 3] = malloc(1);
  }
  qsort(blocks, COUNT_OF(blocks), sizeof blocks[0], by_address);
  CHECK(blocks[0] != NULL);
  for (size_t i = 1; i < COUNT_OF(blocks); i++)
    CHECK_MSG(blocks[i - 1] != blocks[i], "block %zu is %p twice", i, blocks[i]);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) free(blocks[i]);
  return 0;
}
