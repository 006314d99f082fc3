/* Blocks that come and go one at a time begin at multiples of 16, small ones too (those of up to 8
 * bytes that live side by side need not); memalign of nothing, of little and of an alignment above
 * the block is a block. */
#include "api/check.h"

int main(void) {
  for (size_t size = 1; size <= 4096; size += size < 200 ? 1 : 97) {
    char *block = MUST(malloc(size));
    CHECK_MSG(size <= 8 || (uintptr_t)block % 16 == 0, "%p of %zu bytes", (void *)block, size);
    memset(block, 1, size);
    free(block);
  }
  static const size_t few[] = {2, 8, 13, 16, 23, 43, 123};
  for (size_t i = 0; i < COUNT_OF(few); i++) {
    char *block = malloc(few[i]);
    CHECK_MSG((uintptr_t)block % 16 == 0, "%p of %zu bytes", (void *)block, few[i]);
    free(block);
  }
  for (size_t alignment = 1; alignment <= 1 << 16; alignment *= 2) {
    void *none = memalign(alignment, 0), *little = memalign(alignment, 1);
    CHECK(none != NULL && little != NULL && none != little);
    CHECK((uintptr_t)none % alignment == 0 && (uintptr_t)little % alignment == 0);
    free(none);
    free(little);
  }
  return 0;
}
