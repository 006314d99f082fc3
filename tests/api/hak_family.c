/* The malloc family under hakmem's own names, mixed with the standard names. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "hakmem/hakmem.h"

static void check_block(void *block, size_t alignment, size_t size) {
  CHECK_MSG(block != NULL && (uintptr_t)block % alignment == 0, "size %zu: %p", size, block);
  CHECK(hak_malloc_usable_size(block) >= size);
  CHECK(hak_malloc_usable_size(block) == malloc_usable_size(block));
  stamp_write(block, size, size);
  CHECK(stamp_holds(block, size, size));
}

static void check_size(size_t size) {
  size_t natural = size <= 8 ? 8 : 16, page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  void *block = hak_malloc(size), *out = NULL;
  check_block(block, natural, size);
  block = hak_realloc(block, 2 * size);
  CHECK(block != NULL && stamp_holds(block, size, size));
  block = hak_reallocarray(block, size, 3);
  CHECK(block != NULL && stamp_holds(block, size, size));
  free(block);

  block = hak_calloc(size, 1);
  CHECK(block != NULL && all_bytes_are(block, size, 0));
  check_block(block, natural, size);
  hak_free_sized(block, size);

  block = hak_aligned_alloc(512, size);
  check_block(block, 512, size);
  hak_free_aligned_sized(block, 512, size);

  CHECK(hak_posix_memalign(&out, 128, size) == 0);
  check_block(out, 128, size);
  hak_free(out);

  block = hak_memalign(96, size);
  check_block(block, 128, size);
  hak_free(block);

  block = hak_valloc(size);
  check_block(block, page_bytes, size);
  hak_free(block);

  block = hak_pvalloc(size);
  check_block(block, page_bytes, (size + page_bytes - 1) / page_bytes * page_bytes);
  hak_free(block);

  block = MUST(malloc(size));
  hak_free(block);
}

#define REFUSED(call) CHECK((errno = 0, (call) == NULL) && errno == ENOMEM)

static void check_errors(void) {
  void *block = hak_malloc(100), *out = &out;
  REFUSED(hak_malloc(SIZE_MAX));
  REFUSED(hak_calloc(SIZE_MAX / 8 + 2, 8));
  REFUSED(hak_realloc(block, SIZE_MAX));
  REFUSED(hak_reallocarray(block, SIZE_MAX / 8 + 2, 8));
  REFUSED(hak_aligned_alloc(64, SIZE_MAX));
  REFUSED(hak_memalign(64, SIZE_MAX));
  REFUSED(hak_valloc(SIZE_MAX));
  REFUSED(hak_pvalloc(SIZE_MAX));
  errno = 0;
  CHECK(hak_aligned_alloc(48, 64) == NULL && errno == EINVAL);
  errno = 0;
  CHECK(hak_posix_memalign(&out, 4, 64) == EINVAL && errno == 0);
  CHECK(hak_posix_memalign(&out, 64, SIZE_MAX) == ENOMEM && errno == ENOMEM);
  errno = 0;
  CHECK(out == &out);
  CHECK(hak_realloc(block, 0) == NULL && errno == 0);
  CHECK(hak_malloc_usable_size(NULL) == 0);
  hak_free(NULL);
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) check_size(tier_sizes[i]);
  check_errors();
  return 0;
}
