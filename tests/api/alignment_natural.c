/* Every size from 1 byte to 1 MiB is aligned for any object of that size: 16, or 8 up to 8
 * bytes. */
#include "api/check.h"
#include "api/sizes.h"

static void check_aligned(const void *block, size_t size) {
  size_t alignment = size <= 8 ? 8 : 16;
  CHECK_MSG(block != NULL && (uintptr_t)block % alignment == 0, "size %zu at %p", size, block);
}

/* Two live blocks of a size: the first of a slab is always aligned, the second only when the class
 * is. */
int main(void) {
  for (size_t size = 1; size <= MIB; size += size < 128 * KIB ? 1 : 61) {
    void *first = malloc(size), *second = malloc(size);
    check_aligned(first, size);
    check_aligned(second, size);
    free(first);
    first = realloc(NULL, size);
    check_aligned(first, size);
    free(first);
    free(second);
    if (size <= 32 * KIB) {
      void *zeroed = calloc(1, size);
      check_aligned(zeroed, size);
      free(zeroed);
    }
  }
  return 0;
}
