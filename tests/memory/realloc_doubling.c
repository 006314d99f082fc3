/* Blocks that grow by doubling while others are allocated in between, so that each has to move:
 * nothing of their content is lost, and what they left can be used again.
 *
 * The larger ones are moved by the kernel, in pages, out of and into places that have been moved
 * before. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

enum { ROUNDS = 3, NEIGHBOURS = 16 };
#define FIRST_BYTES ((size_t)5 << 10)
#define LAST_BYTES (80 * MIB)

static void *written(size_t bytes) {
  void *block = malloc(bytes);
  CHECK_MSG(block != NULL, "%zu bytes", bytes);
  stamp_write(block, bytes, bytes);
  return block;
}

/* Each second neighbour goes at once: its place is where others will move to. */
static void doubled(size_t neighbour_bytes) {
  void *neighbours[NEIGHBOURS], *block = written(FIRST_BYTES);
  unsigned count = 0;
  for (size_t bytes = FIRST_BYTES; bytes < LAST_BYTES; bytes *= 2) {
    neighbours[count++] = written(neighbour_bytes);
    void *gap = written(bytes);
    block = realloc(block, 2 * bytes);
    CHECK_MSG(block != NULL, "%zu bytes", 2 * bytes);
    CHECK_MSG(stamp_holds(block, bytes, bytes), "%zu bytes", 2 * bytes);
    stamp_write(block, 2 * bytes, 2 * bytes);
    CHECK_MSG(stamp_holds(gap, bytes, bytes), "%zu bytes", bytes);
    free(gap);
  }
  while (count--) {
    CHECK(stamp_holds(neighbours[count], neighbour_bytes, neighbour_bytes));
    free(neighbours[count]);
  }
  free(block);
}

int main(void) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    doubled(64);
    doubled(300 * KIB);
    doubled(3 * MIB);
  }
  return 0;
}
