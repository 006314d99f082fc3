/* What the aligned functions refuse, and how: EINVAL for alignments, ENOMEM for sizes. */
#include "api/check.h"

static void check_posix_memalign(void) {
  static const size_t bad[] = {0, 1, 2, 3, 4, 7, 9, 12, 24, 40, 4095, SIZE_MAX};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    void *out = &out;
    errno = 0;
    CHECK_MSG(posix_memalign(&out, bad[i], 64) == EINVAL, "alignment %zu", bad[i]);
    CHECK(out == &out && errno == 0); /* the error is the value alone */
  }
  void *out = &out;
  errno = 0;
  CHECK(posix_memalign(&out, 4096, SIZE_MAX - 4096) == ENOMEM && errno == ENOMEM);
  errno = 0;
  CHECK(posix_memalign(&out, (size_t)PTRDIFF_MAX + 1, 64) == ENOMEM && errno == ENOMEM);
  CHECK(out == &out);
  CHECK(posix_memalign(&out, sizeof(void *), 0) == 0);
  CHECK(out != NULL && out != &out);
  free(out);
}

static void check_aligned_alloc(void) {
  static const size_t bad[] = {0, 3, 12, 24, 100, 4095, SIZE_MAX};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    errno = 0;
    CHECK_MSG(aligned_alloc(bad[i], 64) == NULL && errno == EINVAL, "alignment %zu", bad[i]);
  }
  errno = 0;
  CHECK(aligned_alloc((size_t)PTRDIFF_MAX + 1, 64) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(aligned_alloc(64, PTRDIFF_MAX) == NULL && errno == ENOMEM);
  void *block = aligned_alloc(256, 100); /* C17: the size need not be a multiple any more */
  CHECK(block != NULL && (uintptr_t)block % 256 == 0);
  free(block);
}

/* glibc rounds other alignments up to a power of two, and refuses what cannot be rounded. */
static void check_memalign(void) {
  static const size_t odd[][2] = {{0, 1}, {1, 1}, {3, 4}, {24, 32}, {100, 128}, {4097, 8192}};
  for (size_t i = 0; i < COUNT_OF(odd); i++) {
    void *block = memalign(odd[i][0], 100);
    CHECK_MSG(block != NULL, "alignment %zu", odd[i][0]);
    CHECK_MSG((uintptr_t)block % odd[i][1] == 0, "alignment %zu: %p", odd[i][0], block);
    free(block);
  }
  errno = 0;
  CHECK(memalign(SIZE_MAX, 8) == NULL && errno == EINVAL);
  errno = 0;
  CHECK(memalign((size_t)PTRDIFF_MAX + 2, 8) == NULL && errno == EINVAL);
}

int main(void) {
  check_posix_memalign();
  check_aligned_alloc();
  check_memalign();
  return 0;
}
