/* malloc_trim: 1 when it gave memory back, which the resident size shows; 0 when there was none. */
#include "memory/blocks.h"

int main(void) {
  size_t start_bytes = rss_bytes();
  blocks_use(KIB, 4096);
  blocks_use(16 * KIB, 4096);
  blocks_use(512 * KIB, 64);
  blocks_use(8 * MIB, 4);
  CHECK(malloc_trim(0) == 1);
  size_t end_bytes = rss_bytes();
  CHECK_MSG(end_bytes < start_bytes + 4 * MIB, "from %zu to %zu", start_bytes, end_bytes);
  CHECK(malloc_trim(0) == 0);

  blocks_use(16 * KIB, 256);
  CHECK(malloc_trim(0) == 1);
  return 0;
}
