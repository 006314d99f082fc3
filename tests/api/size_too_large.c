/* Sizes that no block can have: NULL and ENOMEM from every entry point, and life goes on. */
#include "api/check.h"

#define REFUSED(call)                                              \
  do {                                                             \
    errno = 0;                                                     \
    CHECK_MSG((call) == NULL, "size %zx", size);                   \
    CHECK_MSG(errno == ENOMEM, "size %zx: errno %d", size, errno); \
  } while (0)

static void refuse(size_t size) {
  void *out = &out;
  REFUSED(malloc(size));
  REFUSED(calloc(1, size));
  REFUSED(calloc(size, 1));
  REFUSED(realloc(NULL, size));
  REFUSED(reallocarray(NULL, 1, size));
  REFUSED(memalign(16, size));
  REFUSED(memalign(64, size));
  REFUSED(memalign(1 << 22, size));
  REFUSED(aligned_alloc(4096, size));
  REFUSED(valloc(size));
  REFUSED(pvalloc(size));
  CHECK(posix_memalign(&out, 64, size) == ENOMEM);
  CHECK(posix_memalign(&out, 1 << 22, size) == ENOMEM);
  CHECK(out == &out);
}

int main(void) {
  static const size_t sizes[] = {
      (size_t)PTRDIFF_MAX + 1,
      (size_t)PTRDIFF_MAX + 2,
      PTRDIFF_MAX, /* no room for the last */
      PTRDIFF_MAX - 4096,
      SIZE_MAX / 2 + 4096,
      SIZE_MAX - (2 << 20),
      SIZE_MAX - 65536,
      SIZE_MAX - 4096,
      SIZE_MAX - 4095,
      SIZE_MAX - 16,
      SIZE_MAX - 15,
      SIZE_MAX - 1,
      SIZE_MAX,
  };
  for (size_t i = 0; i < COUNT_OF(sizes); i++) refuse(sizes[i]);
  void *block = MUST(malloc(100));
  free(block);
  return 0;
}
