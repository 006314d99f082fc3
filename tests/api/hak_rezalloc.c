/* hak_rezalloc keeps the content and zeroes the growth, on memory that was dirty before. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "hakmem/hakmem.h"

enum { BLOCKS = 8 };

static void dirty(size_t size) {
  void *blocks[BLOCKS];
  size_t count = size <= 100000 ? BLOCKS : 1; /* the one a cache hands out again */
  for (size_t i = 0; i < count; i++) {
    blocks[i] = MUST(hak_malloc(size));
    memset(blocks[i], 0xa5, hak_malloc_usable_size(blocks[i]));
  }
  for (size_t i = 0; i < count; i++) hak_free(blocks[i]);
}

/* A block that was zeroed from birth: all growth is zero, from the requested size on. */
static void check_from_calloc(size_t from, size_t to) {
  dirty(from);
  dirty(to);
  unsigned char *block = MUST(hak_calloc(1, from));
  stamp_write(block, from, from);
  block = hak_rezalloc(block, to);
  CHECK(block != NULL && stamp_holds(block, from, from));
  CHECK_MSG(all_bytes_are(block + from, to - from, 0), "%zu to %zu", from, to);
  hak_free(block);
}

/* A block that was not: zero from its old usable size on. */
static void check_from_malloc(size_t from, size_t to) {
  dirty(to);
  unsigned char *block = MUST(hak_malloc(from));
  size_t usable_bytes = hak_malloc_usable_size(block);
  stamp_write(block, usable_bytes, from);
  block = hak_rezalloc(block, to);
  CHECK(block != NULL && stamp_holds(block, usable_bytes < to ? usable_bytes : to, from));
  if (usable_bytes < to)
    CHECK_MSG(all_bytes_are(block + usable_bytes, to - usable_bytes, 0), "%zu to %zu", from, to);
  hak_free(block);
}

/* hak_calloc and hak_rezalloc give zeros to the end of the block, whatever usable size it has. */
static void check_to_the_end(size_t size) {
  for (int round = 0; round < 4; round++) {
    dirty(size);
    char *block = MUST(round % 2 ? hak_calloc(1, size) : hak_rezalloc(NULL, size));
    CHECK_MSG(all_bytes_are(block, hak_malloc_usable_size(block), 0), "%zu", size);
    memset(block, 0xa5, hak_malloc_usable_size(block));
    hak_free(block);
  }
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    check_to_the_end(tier_sizes[i]);
    for (size_t j = 0; j < TIER_SIZES; j++) {
      if (tier_sizes[i] <= tier_sizes[j]) check_from_calloc(tier_sizes[i], tier_sizes[j]);
      check_from_malloc(tier_sizes[i], tier_sizes[j]);
    }
  }
  dirty(1000);
  unsigned char *block = hak_rezalloc(NULL, 1000);
  CHECK(block != NULL && all_bytes_are(block, 1000, 0));
  CHECK_FAILS(hak_rezalloc(block, SIZE_MAX), ENOMEM);
  CHECK(all_bytes_are(block, 1000, 0));
  CHECK(hak_rezalloc(block, 0) == NULL);
  return 0;
}
