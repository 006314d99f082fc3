/* malloc_trim: 1 when it gave memory back, which the resident size shows; 0 when there was none. */
#include "api/check.h"
#include "api/sizes.h"
#include "memory/rss.h"

enum { BLOCKS = 4096 };

static void use(size_t size, size_t count) {
  static void *blocks[BLOCKS];
  for (size_t i = 0; i < count; i++) {
    blocks[i] = malloc(size);
    CHECK(blocks[i] != NULL);
    memset(blocks[i], 1, size);
  }
  for (size_t i = 0; i < count; i++) {
    free(blocks[i]);
  }
}

int main(void) {
  size_t start_bytes = rss_bytes();
  use(KIB, BLOCKS);
  use(16 * KIB, BLOCKS);
  use(512 * KIB, 64);
  use(8 * MIB, 4);
  CHECK(malloc_trim(0) == 1);
  size_t end_bytes = rss_bytes();
  CHECK_MSG(end_bytes < start_bytes + 4 * MIB, "from %zu to %zu", start_bytes, end_bytes);
  CHECK(malloc_trim(0) == 0);

  use(16 * KIB, 256);
  CHECK(malloc_trim(0) == 1);
  return 0;
}
