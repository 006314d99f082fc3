/* realloc to less, but not less than half, leaves a block where it is; one of a few bytes at any
 * size. */
#include "api/check.h"
#include "api/sizes.h"

int main(void) {
  for (size_t size = 1; size <= 8 * MIB; size = size * 5 / 4 + 1) {
    char *block = MUST(malloc(size));
    size_t usable_bytes = malloc_usable_size(block);
    for (size_t less = usable_bytes; less >= (usable_bytes + 1) / 2 && less; less -= less / 16 + 1)
      CHECK_MSG(realloc(block, less) == block, "from %zu to %zu", usable_bytes, less);
    free(block);
  }
  for (size_t size = 1; size <= 32; size++) {
    char *block = malloc(size);
    for (size_t less = size; less; less--) CHECK(realloc(block, less) == block);
    free(block);
  }
  return 0;
}
