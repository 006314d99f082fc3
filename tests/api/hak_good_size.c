/* hak_good_size(n) is the usable size that hak_malloc(n) gives, for every n. */
#include "api/check.h"
#include "api/sizes.h"
#include "hakmem/hakmem.h"

static void check_size(size_t size) {
  void *block = MUST(hak_malloc(size));
  size_t good_bytes = hak_good_size(size), usable_bytes = hak_malloc_usable_size(block);
  CHECK_MSG(good_bytes == usable_bytes, "size %zu: good %zu, usable %zu", size, good_bytes,
            usable_bytes);
  CHECK(good_bytes >= size);
  CHECK_MSG(hak_good_size(good_bytes) == good_bytes, "size %zu: good %zu", size, good_bytes);
  hak_free(block);
}

int main(void) {
  for (size_t size = 0; size <= MIB; size += size < 40 * KIB ? 1 : 61) {
    check_size(size);
    CHECK(hak_good_size(size) <= hak_good_size(size + 1));
  }
  for (size_t i = 0; i < TIER_SIZES; i++) check_size(tier_sizes[i]);
  CHECK(hak_good_size((size_t)PTRDIFF_MAX + 1) == (size_t)PTRDIFF_MAX + 1);
  CHECK(hak_good_size(SIZE_MAX) == SIZE_MAX);
  return 0;
}
