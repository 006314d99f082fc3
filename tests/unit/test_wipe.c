/* src/hardened/wipe: what of a freed block reads as zero, and what of it is looked at. */
#include "hardened/wipe.h"

#include <string.h>

#include "map/size_class.h"
#include "unit.h"

enum { SPACE_BYTES = 128 << 10, PLACES = 3, FILL = 0xee };

static _Alignas(4096) unsigned char space[SPACE_BYTES];

static bool is_kept(size_t begin, size_t end) {
  for (size_t at = begin; at < end; at++)
    if (space[at] != FILL) return false;
  return true;
}

/* Of the block `index` of a slab; neighbours keep what is theirs. */
static void wipe_one(unsigned index, size_t block_bytes) {
  size_t begin = index * block_bytes;
  memset(space, FILL, (PLACES + 1) * block_bytes);
  wipe_block((uintptr_t)space + begin, block_bytes);
  assert_true(is_kept(0, begin) && is_kept(begin + block_bytes, (PLACES + 1) * block_bytes));
}

static void assert_found(uintptr_t block, size_t block_bytes, size_t at) {
  unsigned char *byte = (unsigned char *)block + at; /* NOLINT: blocks are made of addresses */
  *byte = 1;
  assert_false(wipe_is_whole(block, block_bytes));
  assert_int_equal(wipe_find_written(block, block_bytes), at);
  *byte = 0;
}

/* What was left as it was is no concern of whoever looks.  The smallest class has no room for a
 * trailer. */
static void look_at_all(uint64_t level) {
  options.harden = level;
  for (unsigned class = 1; class_bytes(class) <= STEPPED_MAX_BYTES; class ++)
    for (unsigned index = 0; index < PLACES; index++) {
      size_t block_bytes = class_bytes(class);
      uintptr_t block = (uintptr_t)space + index * block_bytes;
      wipe_one(index, block_bytes);
      assert_true(wipe_is_whole(block, block_bytes));
      assert_int_equal(wipe_find_written(block, block_bytes), block_bytes);
      bool is_all = is_wiped_wholly(block_bytes);
      for (size_t at = 0; at < block_bytes; at++)
        if (is_all || at < WIDE_BYTES || at >= block_bytes - WIDE_BYTES)
          assert_found(block, block_bytes, at);
      assert_int_equal(find_nonzero(block, block_bytes) == block_bytes, is_all);
    }
}

TEST(level_1_does_the_ends) { look_at_all(1); }

TEST(level_2_does_all) { look_at_all(2); }

TEST(small_ones_are_done_wholly) {
  options.harden = 1;
  assert_true(is_wiped_wholly(WIPED_WHOLLY_BYTES));
  assert_false(is_wiped_wholly(WIPED_WHOLLY_BYTES + WIDE_BYTES));
}
