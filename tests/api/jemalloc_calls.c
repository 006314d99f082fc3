/* jemalloc's own calls, mixed with malloc's as programs mix them that are linked with it: each
 * frees, resizes and asks about blocks of all the others; alignment and zeroes are as its manual
 * has them; what a size is said to give may be used. */
#include "api/jemalloc_calls.h"

#include <stdbool.h>

#include "api/check.h"
#include "api/sizes.h"

static const int all_flags[] = {0,        LG_64,          LG_PAGE,        LG_2_MIB,
                                ZERO,     ZERO | LG_64,   ZERO | LG_PAGE, ZERO | LG_2_MIB,
                                NO_CACHE, ARENA(3) | ZERO};
enum { FLAGS = sizeof all_flags / sizeof all_flags[0] };

static bool is_aligned(const void *block, int flags) {
  return (uintptr_t)block % ((size_t)1 << (flags & 0x3f)) == 0;
}

static bool all_are(const unsigned char *bytes, size_t count, int value) {
  return count == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/* A block whose whole usable size holds 7, so that the next of its size is not zero by chance. */
static void leave_a_mark(size_t size, int flags) {
  unsigned char *block = MUST(mallocx(size, flags & ~ZERO));
  memset(block, 7, sallocx(block, 0));
  dallocx(block, 0);
}

static unsigned char *make(size_t size, int flags) {
  leave_a_mark(size, flags);
  unsigned char *block = mallocx(size, flags);
  CHECK_MSG(block != NULL, "size %zu, flags %#x", size, (unsigned)flags);
  size_t usable_bytes = sallocx(block, flags);
  CHECK_MSG(is_aligned(block, flags), "size %zu, flags %#x: %p", size, (unsigned)flags,
            (void *)block);
  CHECK(usable_bytes >= size && usable_bytes == malloc_usable_size(block));
  CHECK_MSG(nallocx(size, flags) >= size && nallocx(size, flags) <= usable_bytes,
            "size %zu, flags %#x: %zu said, %zu usable", size, (unsigned)flags,
            nallocx(size, flags), usable_bytes);
  if (flags & ZERO) CHECK_MSG(all_are(block, usable_bytes, 0), "size %zu", size);
  memset(block, 1, usable_bytes);
  return block;
}

static void check_frees(size_t size, int flags) {
  free(make(size, flags));
  dallocx(make(size, flags), flags);
  sdallocx(make(size, flags), size, flags);
  unsigned char *block = make(size, flags);
  sdallocx(block, sallocx(block, flags), flags);
  sdallocx(make(size, flags), nallocx(size, flags), flags);
  block = malloc(size);
  CHECK(block != NULL && sallocx(block, 0) == malloc_usable_size(block));
  sdallocx(block, size, 0);
  dallocx(malloc(size), 0);
}

/* To twice and to a third: what was there stays, growth is zero, and so is what grows later. */
static void check_resizes(size_t size, int flags) {
  unsigned char *block = make(size, flags);
  size_t usable_bytes = sallocx(block, 0);
  block = rallocx(block, size * 2, flags);
  CHECK(block != NULL && is_aligned(block, flags));
  CHECK_MSG(all_are(block, usable_bytes < size * 2 ? usable_bytes : size * 2, 1), "size %zu", size);
  size_t grown_bytes = sallocx(block, 0);
  CHECK(grown_bytes >= size * 2);
  if (flags & ZERO)
    CHECK_MSG(all_are(block + usable_bytes, grown_bytes - usable_bytes, 0), "size %zu", size);
  block = rallocx(block, size / 3 + 1, flags);
  CHECK(block != NULL && is_aligned(block, flags) && all_are(block, size / 3 + 1, 1));
  block = realloc(block, size);
  CHECK(block != NULL && all_are(block, size / 3 + 1 < size ? size / 3 + 1 : size, 1));
  free(block);
}

static void check_in_place(size_t size, int flags) {
  unsigned char *block = make(size, flags);
  size_t before = sallocx(block, 0), after = xallocx(block, size * 2, size, flags);
  CHECK_MSG(after == sallocx(block, 0) && after >= before, "size %zu: from %zu to %zu", size,
            before, after);
  CHECK_MSG(all_are(block, before, 1), "size %zu", size);
  if (flags & ZERO) CHECK(all_are(block + before, after - before, 0));
  CHECK(xallocx(block, size, SIZE_MAX - size, flags) >= size);
  CHECK(xallocx(block, size, 0, flags) >= size && all_are(block, size, 1));
  sdallocx(block, sallocx(block, 0), flags);
}

static void check_the_impossible(void) {
  char *volatile block = MUST(mallocx(100, 0));
  memset(block, 3, 100);
  CHECK_FAILS(mallocx(PTRDIFF_MAX, 0), ENOMEM);
  CHECK(mallocx(100, 62) == NULL && mallocx(SIZE_MAX, ZERO) == NULL);
  CHECK(rallocx(block, PTRDIFF_MAX, 0) == NULL && rallocx(block, SIZE_MAX, LG_64 | ZERO) == NULL);
  CHECK(xallocx(block, PTRDIFF_MAX, 1, 0) == sallocx(block, 0));
  CHECK(nallocx(SIZE_MAX, 0) == 0 && nallocx((size_t)PTRDIFF_MAX + 1, LG_64) == 0);
  CHECK(all_are((unsigned char *)block, 100, 3));
  block = rallocx(block, 0, 0); /* not defined by its manual: no free */
  CHECK(block != NULL);
  dallocx(block, 0);
  dallocx(NULL, 0);
  sdallocx(NULL, 5, 0);
  block = rallocx(NULL, 5, ZERO);
  CHECK(block != NULL && block[4] == 0);
  dallocx(block, 0);
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    for (size_t j = 0; j < FLAGS; j++) {
      check_frees(tier_sizes[i], all_flags[j]);
      check_resizes(tier_sizes[i], all_flags[j]);
      check_in_place(tier_sizes[i], all_flags[j]);
    }
  }
  check_the_impossible();
  return 0;
}
