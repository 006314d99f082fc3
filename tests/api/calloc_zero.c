/* calloc returns zeroes, also in memory that was used before, in every tier, up to the last usable
 * byte asked for. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

enum { BLOCKS = 40, ROUNDS = 4 };

/* Few blocks of the large sizes: enough to find a recycled one, and page faults take time. */
static size_t count_for(size_t size) { return size <= 100000 ? BLOCKS : 4; }

static void dirty(size_t size) {
  void *blocks[BLOCKS];
  size_t blocks_used = count_for(size);
  for (size_t i = 0; i < blocks_used; i++) {
    blocks[i] = MUST(malloc(size));
    memset(blocks[i], 0xa5, malloc_usable_size(blocks[i]));
  }
  for (size_t i = 0; i < blocks_used; i++) free(blocks[i]);
}

static void check_zero(size_t count, size_t size) {
  void *blocks[BLOCKS];
  size_t blocks_used = count_for(count * size);
  for (size_t i = 0; i < blocks_used; i++) {
    blocks[i] = MUST(calloc(count, size));
    CHECK_MSG(all_bytes_are(blocks[i], count * size, 0), "%zu * %zu, block %zu", count, size, i);
    memset(blocks[i], 0x5a, malloc_usable_size(blocks[i]));
  }
  for (size_t i = 0; i < blocks_used; i++) free(blocks[i]);
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    size_t size = tier_sizes[i];
    for (int round = 0; round < ROUNDS; round++) {
      dirty(size);
      check_zero(1, size);
      check_zero(size, 1);
    }
    /* a smaller block in a larger one's memory, and memory given back and taken again */
    dirty(size + size / 7);
    check_zero(1, size);
    malloc_trim(0);
    check_zero(1, size);
  }
  return 0;
}
