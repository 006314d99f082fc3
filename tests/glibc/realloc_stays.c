/* realloc to the usable size, or to what was asked for, leaves a block where it is: programs take
 * what malloc_usable_size offers that way.  So does shrinking to no less than half. */
#include "api/check.h"
#include "api/sizes.h"

static void check(size_t size) {
  char *block = MUST(malloc(size));
  size_t usable_bytes = malloc_usable_size(block);
  CHECK(usable_bytes >= size);
  memset(block, 0x5a, usable_bytes);
  CHECK_MSG(realloc(block, usable_bytes) == block, "%zu of %zu", usable_bytes, size);
  CHECK_MSG(realloc(block, usable_bytes) == block, "%zu of %zu again", usable_bytes, size);
  CHECK(malloc_usable_size(block) == usable_bytes && block[usable_bytes - 1] == 0x5a);
  free(block);
  block = malloc(size);
  CHECK_MSG(realloc(block, size) == block, "%zu", size);
  free(block);
}

int main(void) {
  for (size_t size = 1; size <= 300; size++) check(size);
  for (size_t size = 300; size <= 40 * MIB; size = size * 9 / 8 + 1) {
    check(size);
    check(size & ~(size_t)15);
    check((size + 4095) & ~(size_t)4095);
  }
  for (size_t i = 0; i < TIER_SIZES; i++) check(tier_sizes[i]);
  return 0;
}
