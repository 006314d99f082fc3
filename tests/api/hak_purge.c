/* hak_purge(true) gives back everything that is free and says how much; hak_purge(false) only what
 * is older than the decay, which the test sets to an hour. */
#include <string.h>

#include "api/check.h"
#include "api/sizes.h"
#include "hakmem/hakmem.h"
#include "memory/rss.h"

enum { BLOCKS = 4096 };

static void use(size_t size, size_t count) {
  static void *blocks[BLOCKS];
  for (size_t i = 0; i < count; i++) {
    blocks[i] = hak_malloc(size);
    CHECK(blocks[i] != NULL);
    memset(blocks[i], 1, size);
  }
  for (size_t i = 0; i < count; i++) {
    hak_free(blocks[i]);
  }
}

int main(void) {
  static const size_t sizes[] = {64, KIB, 16 * KIB, 512 * KIB, 8 * MIB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    size_t count = sizes[i] > 16 * KIB ? 32 * MIB / sizes[i] : BLOCKS;
    size_t start_bytes = rss_bytes();
    use(sizes[i], count);
    size_t used_bytes = rss_bytes() - start_bytes;
    CHECK_MSG(hak_purge(false) == 0, "size %zu: nothing is old yet", sizes[i]);
    size_t purged_bytes = hak_purge(true), end_bytes = rss_bytes();
    CHECK_MSG(end_bytes < start_bytes + 2 * MIB, "size %zu: from %zu to %zu", sizes[i], start_bytes,
              end_bytes);
    CHECK_MSG(used_bytes < 4 * MIB || purged_bytes >= used_bytes - 2 * MIB,
              "size %zu: used %zu, purged %zu", sizes[i], used_bytes, purged_bytes);
    CHECK_MSG(hak_purge(true) == 0, "size %zu", sizes[i]);
  }
  return 0;
}
