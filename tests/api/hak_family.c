/* The malloc family under hakmem's own names, mixed with the standard names; good sizes, sites, the
 * version. */
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

static void check_errors(void) {
  void *block = hak_malloc(100), *out = &out;
  CHECK_FAILS(hak_malloc(SIZE_MAX), ENOMEM);
  CHECK_FAILS(hak_malloc_site(SIZE_MAX, 1), ENOMEM);
  CHECK_FAILS(hak_calloc(SIZE_MAX / 8 + 2, 8), ENOMEM);
  CHECK_FAILS(hak_realloc(block, SIZE_MAX), ENOMEM);
  CHECK_FAILS(hak_reallocarray(block, SIZE_MAX / 8 + 2, 8), ENOMEM);
  CHECK_FAILS(hak_aligned_alloc(64, SIZE_MAX), ENOMEM);
  CHECK_FAILS(hak_memalign(64, SIZE_MAX), ENOMEM);
  CHECK_FAILS(hak_valloc(SIZE_MAX), ENOMEM);
  CHECK_FAILS(hak_pvalloc(SIZE_MAX), ENOMEM);
  CHECK_FAILS(hak_aligned_alloc(48, 64), EINVAL);
  errno = 0;
  CHECK(hak_posix_memalign(&out, 4, 64) == EINVAL && errno == 0);
  CHECK(hak_posix_memalign(&out, 64, SIZE_MAX) == ENOMEM && errno == ENOMEM);
  errno = 0;
  CHECK(out == &out);
  CHECK(hak_realloc(block, 0) == NULL && errno == 0);
  CHECK(hak_malloc_usable_size(NULL) == 0);
  hak_free(NULL);
  CHECK(hak_good_size((size_t)PTRDIFF_MAX + 1) == (size_t)PTRDIFF_MAX + 1);
  CHECK(hak_good_size(SIZE_MAX) == SIZE_MAX);
}

/* hak_good_size(n) is the usable size that hak_malloc(n) gives, for every n. */
static void check_good_size(size_t size) {
  void *block = MUST(hak_malloc(size));
  size_t good_bytes = hak_good_size(size), usable_bytes = hak_malloc_usable_size(block);
  CHECK_MSG(good_bytes == usable_bytes && good_bytes >= size, "size %zu: good %zu, usable %zu",
            size, good_bytes, usable_bytes);
  CHECK_MSG(hak_good_size(good_bytes) == good_bytes, "size %zu: good %zu", size, good_bytes);
  CHECK(hak_good_size(size) <= hak_good_size(size + 1));
  hak_free(block);
}

/* A block like any other, whatever the site. */
static void check_sites(size_t size) {
  static const uint32_t sites[] = {0, 1, 63, 64, 12345, UINT32_MAX};
  for (int round = 0; round < 3; round++) {
    void *blocks[COUNT_OF(sites)];
    for (size_t i = 0; i < COUNT_OF(sites); i++) {
      blocks[i] = hak_malloc_site(size, sites[i]);
      check_block(blocks[i], size <= 8 ? 8 : 16, size);
      stamp_write(blocks[i], size, sites[i]);
    }
    for (size_t i = 0; i < COUNT_OF(sites); i++) {
      CHECK(stamp_holds(blocks[i], size, sites[i]));
      hak_free(blocks[i]);
    }
  }
}

/* The header's, when header and library are of the same release. */
static void check_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", HAKMEM_VERSION_MAJOR, HAKMEM_VERSION_MINOR,
           HAKMEM_VERSION_PATCH);
  CHECK_MSG(strcmp(hak_version(), version) == 0, "%s", hak_version());
  CHECK(hak_version() == hak_version());
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    check_size(tier_sizes[i]);
    check_good_size(tier_sizes[i]);
    check_sites(tier_sizes[i]);
  }
  for (size_t size = 0; size <= MIB; size += size < 40 * KIB ? 1 : 61) check_good_size(size);
  check_errors();
  check_version();
  return 0;
}
