/* All powers of two up to 64 MiB, with sizes of every tier: aligned, writable, apart, freeable. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

enum { BLOCKS = 5 };

static void *allocate(size_t which, size_t alignment, size_t size) {
  void *block = NULL;
  switch (which % 3) {
    case 0: return aligned_alloc(alignment, size);
    case 1: return memalign(alignment, size);
    default:
      if (alignment < sizeof(void *)) alignment = sizeof(void *);
      CHECK(posix_memalign(&block, alignment, size) == 0);
      return block;
  }
}

static void check_one(size_t alignment, size_t size) {
  void *blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = allocate(i, alignment, size);
    CHECK_MSG(blocks[i] != NULL, "alignment %zu, size %zu", alignment, size);
    CHECK_MSG((uintptr_t)blocks[i] % alignment == 0, "alignment %zu, size %zu: %p", alignment, size,
              blocks[i]);
    CHECK_MSG(malloc_usable_size(blocks[i]) >= size, "alignment %zu, size %zu: usable %zu",
              alignment, size, malloc_usable_size(blocks[i]));
    stamp_write(blocks[i], size, i);
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    CHECK_MSG(stamp_holds(blocks[i], size, i), "alignment %zu, size %zu", alignment, size);
    free(blocks[i]);
  }
}

int main(void) {
  for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 2) {
    check_one(alignment, 0);
    for (size_t i = 0; i < TIER_SIZES; i++) check_one(alignment, tier_sizes[i]);
    check_one(alignment, alignment);
    check_one(alignment, alignment + 1);
  }
  return 0;
}
