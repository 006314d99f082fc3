/* A realloc that fails: NULL, ENOMEM, and the block stays valid with its content and its size. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

int main(void) {
  static const size_t impossible[] = {SIZE_MAX, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX - 65536};
  for (size_t i = 0; i < TIER_SIZES; i++) {
    size_t bytes = tier_sizes[i];
    void *block = MUST(malloc(bytes));
    stamp_write(block, bytes, i);
    size_t usable_bytes = malloc_usable_size(block);
    for (size_t j = 0; j < COUNT_OF(impossible); j++) {
      errno = 0;
      CHECK(realloc(block, impossible[j]) == NULL);
      CHECK(errno == ENOMEM);
    }
    CHECK(malloc_usable_size(block) == usable_bytes);
    CHECK(stamp_holds(block, bytes, i));
    free(block);
  }
  return 0;
}
