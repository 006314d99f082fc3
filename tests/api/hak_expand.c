/* hak_expand resizes in place or says NULL: it never moves a block, loses content or takes memory
 * that is another block's. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "hakmem/hakmem.h"

enum { NEIGHBOURS = 3, MARK = 4711 };

static void check_expand(size_t from, size_t to) {
  void *blocks[NEIGHBOURS];
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    blocks[i] = MUST(hak_malloc(from));
    stamp_write(blocks[i], from, i);
  }
  size_t usable_bytes = hak_malloc_usable_size(blocks[1]);
  errno = MARK;
  void *expanded = hak_expand(blocks[1], to);
  if (expanded == NULL) {
    CHECK_MSG(to > usable_bytes, "%zu fit into %zu", to, usable_bytes);
    CHECK(errno == MARK && hak_malloc_usable_size(blocks[1]) == usable_bytes);
    CHECK(stamp_holds(blocks[1], from, 1));
  } else {
    CHECK(expanded == blocks[1]);
    CHECK_MSG(hak_malloc_usable_size(expanded) >= to, "%zu to %zu", from, to);
    CHECK(stamp_holds(expanded, from < to ? from : to, 1));
    stamp_write(expanded, to, 1);
  }
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    CHECK_MSG(stamp_holds(blocks[i], i == 1 && to < from ? to : from, i), "%zu to %zu", from, to);
    hak_free(blocks[i]);
  }
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    for (size_t j = 0; j < TIER_SIZES; j++) check_expand(tier_sizes[i], tier_sizes[j]);
    check_expand(tier_sizes[i], hak_good_size(tier_sizes[i]));
  }
  void *block = MUST(hak_malloc(100));
  errno = MARK;
  CHECK(hak_expand(block, SIZE_MAX) == NULL);
  CHECK(hak_expand(block, (size_t)PTRDIFF_MAX + 1) == NULL);
  CHECK(errno == MARK);
  hak_free(block);
  return 0;
}
