/* hak_owns: true for blocks of every tier, live or free, inside them too; false for all else. */
#include <sys/mman.h>

#include "api/check.h"
#include "api/sizes.h"
#include "hakmem/hakmem.h"

static int in_data = 1;

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    size_t size = tier_sizes[i];
    char *block = MUST(hak_malloc(size));
    CHECK_MSG(hak_owns(block), "size %zu", size);
    CHECK_MSG(hak_owns(block + size / 2), "size %zu", size);
    CHECK_MSG(hak_owns(block + size - 1), "size %zu", size);
    hak_free(block);
  }
  char *block = hak_malloc(100);
  hak_free(block);
  CHECK(hak_owns(block));

  int on_stack = 1;
  void *mapping = mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mapping != MAP_FAILED);
  CHECK(!hak_owns(NULL));
  CHECK(!hak_owns(&on_stack));
  CHECK(!hak_owns(&in_data));
  CHECK(!hak_owns("literal"));
  CHECK(!hak_owns((const void *)(uintptr_t)main));
  CHECK(!hak_owns(mapping));
  CHECK(!hak_owns((void *)8));
  CHECK(!hak_owns((void *)UINTPTR_MAX));
  CHECK(!hak_owns((void *)0xdead000000000000u));
  return 0;
}
