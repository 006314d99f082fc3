/* free preserves errno, whatever it has to do: caches, slabs, ranges given back to the system. */
#include "api/check.h"
#include "api/sizes.h"

enum { BLOCKS = 300, MARK = 4711 };

static void free_all(size_t bytes, size_t count) {
  static void *blocks[BLOCKS];
  for (size_t i = 0; i < count; i++) blocks[i] = MUST(malloc(bytes));
  for (size_t i = 0; i < count; i++) {
    errno = MARK;
    free(blocks[i]);
    CHECK_MSG(errno == MARK, "size %zu, block %zu: errno %d", bytes, i, errno);
  }
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    free_all(tier_sizes[i], BLOCKS); /* more than a magazine holds, so that it flushes */
  }
  free_all(300 * MIB, 3); /* above what BigCache keeps by default: goes back at once */
  errno = MARK;
  free(NULL);
  CHECK(errno == MARK);
  return 0;
}
