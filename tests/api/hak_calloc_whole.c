/* hak_calloc and hak_rezalloc give zeros to the end of the block, in memory that was written to before, whatever usable size it has. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "hakmem/hakmem.h"

enum { DIRTY = 20 };

static void leave_dirt(size_t size) {
  char *blocks[DIRTY];
  for (size_t i = 0; i < DIRTY; i++) {
    CHECK((blocks[i] = malloc(size)) != NULL);
    memset(blocks[i], 0xA5, malloc_usable_size(blocks[i]));
  }
  for (size_t i = 0; i < DIRTY; i++) free(blocks[i]);
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    for (int round = 0; round < 4; round++) {
      leave_dirt(tier_sizes[i]);
      char *block = round % 2 ? hak_calloc(1, tier_sizes[i]) : hak_rezalloc(NULL, tier_sizes[i]);
      CHECK(block != NULL);
      CHECK_MSG(all_bytes_are(block, malloc_usable_size(block), 0), "%zu", tier_sizes[i]);
      memset(block, 0xA5, malloc_usable_size(block));
      free(block);
    }
  }
  return 0;
}
