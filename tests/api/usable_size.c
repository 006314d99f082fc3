/* The usable size: at least the request, all of it writable, the same during the block's life. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

enum { BLOCKS = 64 };

static void check_range(void) {
  for (size_t size = 0; size <= MIB; size += size < 33 * KIB ? 1 : 509) {
    unsigned char *block = MUST(malloc(size));
    size_t usable_bytes = malloc_usable_size(block);
    CHECK_MSG(usable_bytes >= size, "size %zu: usable %zu", size, usable_bytes);
    if (usable_bytes > 0) block[0] = block[usable_bytes - 1] = 1;
    free(block);
  }
  CHECK(malloc_usable_size(NULL) == 0);
}

/* Blocks written to the last usable byte do not overlap, and keep their size while neighbours of
 * the same class come and go. */
static void check_life(size_t size) {
  void *blocks[BLOCKS];
  size_t usable_bytes[BLOCKS], count = size <= 100000 ? BLOCKS : 8;
  for (size_t i = 0; i < count; i++) {
    blocks[i] = MUST(malloc(size));
    usable_bytes[i] = malloc_usable_size(blocks[i]);
    stamp_write(blocks[i], usable_bytes[i], i);
  }
  for (size_t i = 0; i < count; i += 2) {
    CHECK_MSG(stamp_holds(blocks[i], usable_bytes[i], i), "size %zu", size);
    free(blocks[i]);
    blocks[i] = MUST(malloc(size));
    usable_bytes[i] = malloc_usable_size(blocks[i]);
    stamp_write(blocks[i], usable_bytes[i], i);
  }
  for (size_t i = 0; i < count; i++) {
    CHECK_MSG(malloc_usable_size(blocks[i]) == usable_bytes[i], "size %zu", size);
    CHECK_MSG(stamp_holds(blocks[i], usable_bytes[i], i), "size %zu", size);
    free(blocks[i]);
  }
}

int main(void) {
  check_range();
  for (size_t i = 0; i < TIER_SIZES; i++) check_life(tier_sizes[i]);
  return 0;
}
