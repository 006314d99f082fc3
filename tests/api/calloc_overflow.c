/* calloc refuses every product that does not fit, and only those. */
#include "api/check.h"

static void refuse(size_t count, size_t size) {
  errno = 0;
  CHECK_MSG(calloc(count, size) == NULL, "%zx * %zx", count, size);
  CHECK_MSG(errno == ENOMEM, "%zx * %zx: errno %d", count, size, errno);
}

int main(void) {
  refuse(SIZE_MAX, 2);
  refuse(2, SIZE_MAX);
  refuse(SIZE_MAX, SIZE_MAX);
  refuse(SIZE_MAX / 2 + 1, 2);              /* product 2^64: wraps to 0 */
  refuse((size_t)1 << 32, (size_t)1 << 32); /* the same, both halves large */
  refuse(SIZE_MAX / 16 + 1, 16);
  refuse(SIZE_MAX / 16 + 2, 16); /* wraps to 16, a size that exists */
  refuse(((size_t)1 << 32) + 1, (size_t)1 << 32);
  refuse(PTRDIFF_MAX / 8 + 1, 8); /* fits size_t, not ptrdiff_t */

  unsigned char *block = MUST(calloc(3, 5));
  free(block);
  return 0;
}
