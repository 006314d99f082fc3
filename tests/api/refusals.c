/* errno as with glibc: ENOMEM from every call that has no memory, whatever its alignment, and for
 * products that overflow; EINVAL for alignments that cannot be rounded; left alone by
 * posix_memalign's EINVAL, by everything that succeeds, and by free. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

#ifndef __GLIBC__ /* musl has none */
#define pvalloc valloc
#endif
#define TOP ((size_t)1 << 63)
#define MARK CHECK_ERRNO_MARK

static void refuse(size_t size) {
  void *block = malloc(16), *out = &out;
  CHECK_FAILS(malloc(size), ENOMEM);
  CHECK_FAILS(realloc(NULL, size), ENOMEM);
  CHECK_FAILS(realloc(block, size), ENOMEM);
  CHECK_FAILS(reallocarray(NULL, 1, size), ENOMEM);
  for (size_t count = 1; count <= 8 && size % count == 0; count *= 2) {
    CHECK_FAILS(calloc(count, size / count), ENOMEM);
    CHECK_FAILS(calloc(size / count, count), ENOMEM);
    CHECK_FAILS(reallocarray(block, count, size / count), ENOMEM);
    CHECK_FAILS(reallocarray(block, size / count, count), ENOMEM);
  }
  CHECK_FAILS(valloc(size), ENOMEM);
  CHECK_FAILS(pvalloc(size), ENOMEM);
  for (size_t alignment = 1; alignment; alignment *= 2) {
    CHECK_FAILS(memalign(alignment, size), ENOMEM);
    CHECK_FAILS(aligned_alloc(alignment, size), ENOMEM);
    if (alignment < sizeof(void *)) continue;
    errno = MARK;
    CHECK(posix_memalign(&out, alignment, size) == ENOMEM);
    CHECK(errno == ENOMEM && out == &out);
  }
  free(block);
}

static void refuse_sizes(void) {
  static const size_t distances[] = {4095, 4096, 65536, 2 * MIB};
  for (size_t i = 0; i < COUNT_OF(distances); i++) {
    refuse(SIZE_MAX - distances[i]);
    refuse((size_t)PTRDIFF_MAX - distances[i]);
    refuse((size_t)PTRDIFF_MAX + distances[i]);
  }
  for (size_t i = 0; i < 40; i++) refuse(SIZE_MAX - i);
  for (size_t i = 0; i <= 40; i++) refuse((size_t)PTRDIFF_MAX + 1 + i);
  for (size_t i = 0; i <= 40; i++) refuse((size_t)PTRDIFF_MAX - i);
  for (int shift = 50; shift < 63; shift++) refuse((size_t)1 << shift);
  for (size_t i = 1; i < 64; i++) refuse(i << 58);
}

static void refuse_growth(size_t bytes) {
  static const size_t sizes[] = {SIZE_MAX, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX - 65536};
  static const size_t products[][2] = {
      {SIZE_MAX, 2},
      {2, SIZE_MAX},
      {SIZE_MAX, SIZE_MAX},
      {SIZE_MAX / 2, 3},
      {SIZE_MAX / 2 + 1, 2},              /* 2^64: wraps to 0 */
      {(size_t)1 << 32, (size_t)1 << 32}, /* the same, both halves large */
      {((size_t)1 << 32) + 1, (size_t)1 << 32},
      {SIZE_MAX / 16 + 1, 16},
      {SIZE_MAX / 16 + 2, 16}, /* wraps to 16, a size that exists */
      {PTRDIFF_MAX, 3},
      {PTRDIFF_MAX / 8 + 1, 8}, /* fits size_t, not ptrdiff_t */
  };
  void *block = MUST(malloc(bytes));
  size_t usable_bytes = malloc_usable_size(block);
  stamp_write(block, bytes, bytes);
  for (size_t i = 0; i < COUNT_OF(products); i++) {
    CHECK_FAILS(calloc(products[i][0], products[i][1]), ENOMEM);
    CHECK_FAILS(reallocarray(NULL, products[i][0], products[i][1]), ENOMEM);
    CHECK_FAILS(reallocarray(block, products[i][0], products[i][1]), ENOMEM);
  }
  for (size_t i = 0; i < COUNT_OF(sizes); i++) CHECK_FAILS(realloc(block, sizes[i]), ENOMEM);
  CHECK(malloc_usable_size(block) == usable_bytes); /* as it was */
  block = MUST(reallocarray(block, bytes, 3));
  CHECK(stamp_holds(block, bytes, bytes));
  stamp_write(block, 3 * bytes, bytes);
  free(block);
}

static void refuse_alignments(void) {
  void *out = &out;
  /* No block has them, but they are alignments. */
  for (size_t alignment = TOP; alignment >= (size_t)1 << 50; alignment /= 2) {
    CHECK_FAILS(memalign(alignment, 64), ENOMEM);
    CHECK_FAILS(aligned_alloc(alignment, 64), ENOMEM);
    CHECK_FAILS(memalign(alignment - 1, 64), ENOMEM); /* rounded up */
  }
  for (size_t alignment = SIZE_MAX; alignment > TOP; alignment = TOP + (alignment - TOP) / 2)
    CHECK_FAILS(memalign(alignment, 64), EINVAL);
  static const size_t odd[] = {1, 2, 4, 0, 3, 7, 9, 12, 24, 40, 65, 100, 4095, TOP + 1, SIZE_MAX};
  for (size_t i = 0; i < COUNT_OF(odd); i++) {
    if (i >= 3) CHECK_FAILS(aligned_alloc(odd[i], 64), EINVAL); /* one of 1, 2 or 4 it gives */
    errno = MARK;
    CHECK_MSG(posix_memalign(&out, odd[i], 64) == EINVAL, "alignment %zu", odd[i]);
    CHECK(errno == MARK && out == &out);
  }
  static const size_t rounded[][2] = {{0, 1}, {1, 1}, {3, 4}, {24, 32}, {100, 128}, {4097, 8192}};
  for (size_t i = 0; i < COUNT_OF(rounded); i++) {
    void *block = MUST(memalign(rounded[i][0], 100));
    CHECK_MSG((uintptr_t)block % rounded[i][1] == 0, "alignment %zu: %p", rounded[i][0], block);
    free(block);
  }
}

static void leave_alone(size_t size) {
  void *out;
  errno = MARK;
  void *blocks[] = {
      malloc(size),           calloc(size, 1), memalign(64, size),          aligned_alloc(32, size),
      valloc(size),           pvalloc(size),   reallocarray(NULL, size, 1), realloc(NULL, size),
      memalign(1 << 18, size)};
  CHECK(posix_memalign(&out, 4096, size) == 0);
  CHECK_MSG(errno == MARK, "size %zu: errno %d", size, errno);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    CHECK(blocks[i] != NULL && malloc_usable_size(blocks[i]) >= size);
    blocks[i] = MUST(realloc(blocks[i], size * 2));
    CHECK_MSG(errno == MARK, "realloc of %zu: errno %d", size, errno);
    free(blocks[i]);
    CHECK_MSG(errno == MARK, "free of %zu: errno %d", size, errno);
  }
  free(out);
  CHECK(posix_memalign(&out, sizeof(void *), 0) == 0 && out != NULL);
  free(out);
  CHECK(realloc(malloc(size), 0) == NULL);
  CHECK(errno == MARK);
}

/* free has more to do for many: caches, slabs, ranges given back to the system. */
static void free_many(size_t size, size_t count) {
  enum { BLOCKS = 300 }; /* more than a magazine holds, so that it flushes */
  static void *blocks[BLOCKS];
  for (size_t i = 0; i < count && i < BLOCKS; i++) blocks[i] = MUST(malloc(size));
  for (size_t i = 0; i < count && i < BLOCKS; i++) {
    errno = MARK;
    free(blocks[i]);
    CHECK_MSG(errno == MARK, "size %zu, block %zu: errno %d", size, i, errno);
  }
}

int main(void) {
  refuse_sizes();
  refuse_alignments();
  for (size_t i = 0; i < TIER_SIZES; i++) {
    refuse_growth(tier_sizes[i]);
    leave_alone(tier_sizes[i]);
    free_many(tier_sizes[i], SIZE_MAX);
  }
  free_many(300 * MIB, 3); /* above what BigCache keeps by default: goes back at once */
  errno = MARK;
  free(NULL);
  CHECK(errno == MARK);
  return 0;
}
