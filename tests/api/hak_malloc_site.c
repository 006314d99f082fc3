/* hak_malloc_site: a block like any other, whatever the site. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "hakmem/hakmem.h"

enum { ROUNDS = 3 };

int main(void) {
  static const uint32_t sites[] = {0, 1, 63, 64, 12345, UINT32_MAX};
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < TIER_SIZES; i++) {
      void *blocks[COUNT_OF(sites)];
      for (size_t j = 0; j < COUNT_OF(sites); j++) {
        blocks[j] = hak_malloc_site(tier_sizes[i], sites[j]);
        CHECK(blocks[j] != NULL && (uintptr_t)blocks[j] % (tier_sizes[i] <= 8 ? 8 : 16) == 0);
        CHECK(hak_malloc_usable_size(blocks[j]) >= tier_sizes[i]);
        stamp_write(blocks[j], tier_sizes[i], sites[j]);
      }
      for (size_t j = 0; j < COUNT_OF(sites); j++) {
        CHECK(stamp_holds(blocks[j], tier_sizes[i], sites[j]));
        hak_free(blocks[j]);
      }
    }
  }
  errno = 0;
  CHECK(hak_malloc_site(SIZE_MAX, 1) == NULL && errno == ENOMEM);
  return 0;
}
