/* errno as with glibc: ENOMEM from every call that has no memory, whatever its alignment; EINVAL for alignments that
 * cannot be rounded; left alone by posix_memalign's EINVAL, by everything that succeeds, and by free. */
#include "api/check.h"
#include "api/sizes.h"

enum { MARK = 4711 };
#define TOP ((size_t)1 << 63)

#define FAILS(call, error)                                                                        \
  do {                                                                                            \
    errno = MARK;                                                                                 \
    CHECK_MSG((call) == NULL, "size %#zx, alignment %#zx", size, alignment);                      \
    CHECK_MSG(errno == (error), "errno %d at size %#zx, alignment %#zx", errno, size, alignment); \
  } while (0)

static void refuse(size_t size) {
  size_t alignment = 0;
  void *block = malloc(16), *out = &out;
  FAILS(malloc(size), ENOMEM);
  FAILS(realloc(NULL, size), ENOMEM);
  FAILS(realloc(block, size), ENOMEM);
  for (size_t count = 1; count <= 8 && size % count == 0; count *= 2) {
    FAILS(calloc(count, size / count), ENOMEM);
    FAILS(calloc(size / count, count), ENOMEM);
    FAILS(reallocarray(block, count, size / count), ENOMEM);
    FAILS(reallocarray(block, size / count, count), ENOMEM);
  }
  FAILS(valloc(size), ENOMEM);
  FAILS(pvalloc(size), ENOMEM);
  for (alignment = 1; alignment; alignment *= 2) {
    FAILS(memalign(alignment, size), ENOMEM);
    FAILS(aligned_alloc(alignment, size), ENOMEM);
    if (alignment < sizeof(void *)) continue;
    errno = MARK;
    CHECK(posix_memalign(&out, alignment, size) == ENOMEM);
    CHECK(errno == ENOMEM && out == &out);
  }
  free(block);
}

static void refuse_alignments(void) {
  size_t size = 64, alignment;
  void *out = &out;
  /* No block has them, but they are alignments. */
  for (alignment = TOP; alignment >= (size_t)1 << 50; alignment /= 2) {
    FAILS(memalign(alignment, size), ENOMEM);
    FAILS(aligned_alloc(alignment, size), ENOMEM);
    FAILS(memalign(alignment - 1, size), ENOMEM); /* rounded up */
  }
  for (alignment = SIZE_MAX; alignment > TOP; alignment = TOP + (alignment - TOP) / 2)
    FAILS(memalign(alignment, size), EINVAL);
  static const size_t odd[] = {0, 3, 12, 65, TOP + 1, SIZE_MAX};
  for (size_t i = 0; i < COUNT_OF(odd); i++) {
    alignment = odd[i];
    FAILS(aligned_alloc(alignment, size), EINVAL);
    errno = MARK;
    CHECK(posix_memalign(&out, alignment, size) == EINVAL && errno == MARK && out == &out);
  }
  FAILS(calloc(SIZE_MAX / 2, 3), ENOMEM);
  FAILS(reallocarray(NULL, SIZE_MAX / 2, 3), ENOMEM);
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
  CHECK(realloc(malloc(size), 0) == NULL);
  malloc_trim(0);
  mallinfo2();
  CHECK(errno == MARK);
}

int main(void) {
  for (size_t i = 0; i < 40; i++) refuse(SIZE_MAX - i);
  for (size_t i = 0; i <= 40; i++) refuse((size_t)PTRDIFF_MAX + 1 + i);
  for (size_t i = 0; i <= 40; i++) refuse((size_t)PTRDIFF_MAX - i);
  for (int shift = 50; shift < 63; shift++) refuse((size_t)1 << shift);
  for (size_t i = 1; i < 64; i++) refuse(i << 58);
  refuse_alignments();
  for (size_t i = 0; i < TIER_SIZES; i++) leave_alone(tier_sizes[i]);
  return 0;
}
