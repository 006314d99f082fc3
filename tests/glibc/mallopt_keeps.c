/* mallopt(M_TRIM_THRESHOLD, -1): free memory stays resident however old it grows; malloc_trim gives
 * it back all the same, and any other threshold lets age decide again.  HAKMEM_DECAY_MS is 40. */
#include "api/check.h"
#include "api/sizes.h"
#include "memory/rss.h"

enum { BLOCKS = 64, DECAY_MS = 40 };

static void use(void) {
  static void *blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = MUST(malloc(MIB / 2));
    memset(blocks[i], 1, MIB / 2);
  }
  for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
}

/* What is left of the memory when it is much older than the decay time, and slow paths have been
 * taken. */
static size_t bytes_left(size_t before) {
  for (int tick = 0; tick < 10; tick++) {
    usleep(DECAY_MS * 1000);
    free(malloc(3 * MIB));
  }
  size_t now = rss_bytes();
  return now > before ? now - before : 0;
}

int main(void) {
  size_t before = rss_bytes();
  CHECK(mallopt(M_TRIM_THRESHOLD, -1) == 1);
  use();
  size_t left = bytes_left(before);
  CHECK_MSG(left >= BLOCKS * MIB / 2 * 9 / 10, "%zu KiB of 32 MiB are left", left / KIB);
  CHECK(malloc_trim(0) == 1);
  CHECK(rss_bytes() < before + 4 * MIB);
  CHECK(mallopt(M_TRIM_THRESHOLD, 128 * 1024) == 1);
  use();
  left = bytes_left(before);
  CHECK_MSG(left <= 8 * MIB, "%zu KiB are left", left / KIB);
  return 0;
}
