/* reallocarray refuses overflowing products and leaves the block as it was; otherwise it reallocs. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

static void refuse(void *block, size_t count, size_t size) {
  errno = 0;
  CHECK(reallocarray(block, count, size) == NULL);
  CHECK(errno == ENOMEM);
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    size_t bytes = tier_sizes[i];
    void *block = MUST(malloc(bytes));
    stamp_write(block, bytes, i);
    refuse(block, SIZE_MAX, 2);
    refuse(block, SIZE_MAX / 16 + 2, 16);
    refuse(block, (size_t)1 << 32, (size_t)1 << 32);
    refuse(block, PTRDIFF_MAX, 3);
    CHECK(stamp_holds(block, bytes, i));
    block = reallocarray(block, bytes, 3);
    CHECK(block != NULL && stamp_holds(block, bytes, i));
    stamp_write(block, 3 * bytes, i);
    free(block);
  }
  void *block = MUST(reallocarray(NULL, 10, 10));
  free(block);
  return 0;
}
