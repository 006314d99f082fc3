/* src/api/malloc_family: the C library's rules at the edges. */
#include "api/malloc_family.h"

#include "heaps.h"

BEFORE(child) { start_library(); }

CHILD_TEST(overflowing_products_are_refused) {
  errno = 0;
  REQUIRE(!family_calloc(SIZE_MAX / 2, 3, 0) && errno == ENOMEM);
  errno = 0;
  char *block = family_malloc_site(10, 0);
  block[9] = 'x';
  REQUIRE(!family_reallocarray(block, SIZE_MAX / 2, 3, 0) && errno == ENOMEM);
  REQUIRE(block[9] == 'x'); /* it stays as it was */
  errno = 0;
  REQUIRE(!family_pvalloc(SIZE_MAX, 0) && errno == ENOMEM);
}

CHILD_TEST(alignments) {
  void *block = NULL;
  REQUIRE(family_posix_memalign(&block, 24, 100, 0) == EINVAL && !block);
  REQUIRE(family_posix_memalign(&block, 2, 100, 0) == EINVAL && !block); /* below a pointer's */
  REQUIRE(family_posix_memalign(&block, 64, 100, 0) == 0 && (uintptr_t)block % 64 == 0);
  errno = 0;
  REQUIRE(!family_aligned_alloc(24, 100, 0) && errno == EINVAL);
  REQUIRE((uintptr_t)family_memalign(24, 100, 0) % 32 == 0); /* rounded up, as in glibc */
  errno = 0;
  REQUIRE(!family_memalign(SIZE_MAX, 100, 0) && errno == EINVAL);
  REQUIRE((uintptr_t)family_valloc(1, 0) % os_page_bytes() == 0);
  REQUIRE(family_usable_size(family_pvalloc(1, 0)) >= os_page_bytes());
}

CHILD_TEST(realloc_at_its_ends) {
  void *block = family_realloc(NULL, 100, 0);
  REQUIRE(block && family_usable_size(block) == 112);
  REQUIRE(family_realloc(block, 112, 0) == block);
  errno = 0;
  REQUIRE(!family_realloc(block, SIZE_MAX, 0) && errno == ENOMEM);
  REQUIRE(!family_realloc(block, 0, 0)); /* freed */
  REQUIRE(family_usable_size(NULL) == 0);
}

CHILD_TEST(calloc_clears_used_memory) {
  static const size_t sizes[] = {8, 1000, 30000, 200000, 2 << 20};
  for (unsigned each = 0; each < sizeof sizes / sizeof sizes[0]; each++) {
    memset(must_malloc(sizes[each]), 0xff, sizes[each]);
    char *used = must_malloc(sizes[each]);
    memset(used, 0xff, sizes[each]);
    hak_free(used);
    char *block = family_calloc(1, sizes[each], 0);
    for (size_t byte = 0; byte < sizes[each]; byte++) REQUIRE(block[byte] == 0);
  }
}
