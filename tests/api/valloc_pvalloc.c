/* valloc and pvalloc: page alignment, and pvalloc rounds the size up to whole pages. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

int main(void) {
  size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < TIER_SIZES; i++) {
    size_t size = tier_sizes[i], whole_pages = (size + page_bytes - 1) / page_bytes * page_bytes;
    void *first = valloc(size), *second = pvalloc(size);
    CHECK(first != NULL && (uintptr_t)first % page_bytes == 0);
    CHECK(second != NULL && (uintptr_t)second % page_bytes == 0);
    CHECK(malloc_usable_size(first) >= size);
    CHECK_MSG(malloc_usable_size(second) >= whole_pages, "size %zu", size);
    stamp_write(first, size, i);
    stamp_write(second, whole_pages, i + 1);
    CHECK(stamp_holds(first, size, i) && stamp_holds(second, whole_pages, i + 1));
    free(first);
    free(second);
  }
  void *first = valloc(0), *second = pvalloc(0);
  CHECK(first != NULL && second != NULL && first != second);
  free(first);
  free(second);
  return 0;
}
