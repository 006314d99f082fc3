/* glibc's internal names for the malloc family lead to hakmem too: nothing escapes. */
#include "api/check.h"
#include "api/entry_names.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "hakmem/hakmem.h"

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    size_t size = tier_sizes[i];
    void *blocks[] = {__libc_malloc(size),        __libc_calloc(1, size),
                      __libc_realloc(NULL, size), __libc_memalign(256, size),
                      __libc_valloc(size),        __libc_pvalloc(size)};
    for (size_t j = 0; j < COUNT_OF(blocks); j++) {
      CHECK_MSG(hak_owns(blocks[j]), "alias %zu, size %zu: %p", j, size, blocks[j]);
      stamp_write(blocks[j], size, j);
    }
    CHECK((uintptr_t)blocks[3] % 256 == 0);
    for (size_t j = 0; j < COUNT_OF(blocks); j++) {
      CHECK(stamp_holds(blocks[j], size, j));
      if (j % 2 == 0) {
        free(blocks[j]);
      } else {
        __libc_free(blocks[j]);
      }
    }
  }
  return 0;
}
