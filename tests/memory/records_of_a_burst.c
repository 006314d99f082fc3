/* 640 MiB of the smallest blocks come and go: of the records of their slabs the bitmaps go back,
 * too, which are 1.6 % of it. */
#include "memory/blocks.h"
#include "memory/rss.h"

enum { BLOCKS = 40 << 20, KEPT_MIB = 5 };

struct block {
  struct block *next;
};

int main(void) {
  size_t start_bytes = rss_bytes();
  struct block *last = NULL;
  for (size_t i = 0; i < BLOCKS; i++) {
    struct block *block = MUST(malloc(sizeof *block));
    block->next = last;
    last = block;
  }
  for (struct block *next; last; last = next) {
    next = last->next;
    free(last);
  }
  malloc_trim(0);
  size_t kept_mib = rss_above_mib(start_bytes);
  CHECK_MSG(kept_mib <= KEPT_MIB, "%zu MiB kept", kept_mib);
  return 0;
}
