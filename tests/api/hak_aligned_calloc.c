/* hak_aligned_calloc gives zeroed blocks at multiples of an alignment, new or used before, and
 * touches no page that comes zeroed from the system. */
#include "api/check.h"
#include "api/sizes.h"
#include "hakmem/hakmem.h"
#include "memory/rss.h"

static void check_block(size_t alignment, size_t size) {
  for (int round = 0; round < 3; round++) { /* the second is mostly the first one's memory */
    unsigned char *block = hak_aligned_calloc(alignment, 1, size);
    CHECK_MSG(block != NULL, "%zu, %zu", alignment, size);
    CHECK_MSG((uintptr_t)block % alignment == 0, "%zu, %zu", alignment, size);
    for (size_t at = 0; at < size; at++)
      CHECK_MSG(!block[at], "%zu, %zu: byte %zu", alignment, size, at);
    memset(block, 0xA5, size);
    hak_free_aligned_sized(block, alignment, size);
  }
}

int main(void) {
  for (size_t alignment = 1; alignment <= MIB; alignment *= 4)
    for (size_t i = 0; i < TIER_SIZES; i++)
      if (tier_sizes[i] <= 2 * MIB) check_block(alignment, tier_sizes[i]);

  size_t start_bytes = rss_bytes();
  char *huge = hak_aligned_calloc(4096, 1024, MIB);
  CHECK(huge != NULL && !huge[512 * MIB]);
  CHECK(rss_bytes() < start_bytes + 64 * MIB);
  hak_free(huge);

  CHECK_FAILS(hak_aligned_calloc(64, SIZE_MAX / 2, 3), ENOMEM);
  CHECK_FAILS(hak_aligned_calloc(64, 1, SIZE_MAX), ENOMEM);
  CHECK_FAILS(hak_aligned_calloc(48, 1, 100), EINVAL);
  CHECK_FAILS(hak_aligned_calloc(0, 1, 100), EINVAL);
  void *nothing = MUST(hak_aligned_calloc(64, 0, 100));
  hak_free(nothing);
  return 0;
}
