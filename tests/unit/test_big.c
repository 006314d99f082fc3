/* src/ranges/big: blocks above 1 MiB: the BigCache, resizing in place, moving pages. */
#include "ranges/big.h"

#include "heaps.h"

BEFORE(child) { start_library(); }

#define MIB ((size_t)1 << 20)

/* From the second request on the site is known to ask for this size, and what it frees is kept
 * whole. */
/* What was freed last is taken first, as far as it fits; the rest stays free. */
CHILD_TEST(count_and_reuse) {
  hak_free(must_malloc(3 * MIB));
  void *block = must_malloc(3 * MIB);
  REQUIRE(load_relaxed(&totals.big_live_bytes) == hak_malloc_usable_size(block));
  REQUIRE(counted(COUNT_big_allocs) == 2);
  hak_free(block);
  REQUIRE(load_relaxed(&totals.big_live_bytes) == 0 && counted(COUNT_big_frees) == 2);
  void *small = must_malloc(2 * MIB);
  REQUIRE(small == block && hak_malloc_usable_size(small) == hak_good_size(2 * MIB));
  REQUIRE(counted(COUNT_large_range_hits) == 2);
}

CHILD_TEST(growing_in_place) {
  unsigned char *block = must_malloc(2 * MIB);
  memset(block, 0x42, 2 * MIB);
  size_t usable = hak_malloc_usable_size(block);
  REQUIRE(hak_realloc(block, usable - 100) == block);
  REQUIRE(hak_expand(block, 5 * MIB / 4) == block);
  REQUIRE(hak_malloc_usable_size(block) < 2 * MIB);
  REQUIRE(load_relaxed(&totals.big_live_bytes) == hak_malloc_usable_size(block));
  for (size_t at = 0; at < 5 * MIB / 4; at += 101) REQUIRE(block[at] == 0x42);
  hak_free(block);
  REQUIRE(load_relaxed(&totals.big_live_bytes) == 0);
}

static void fill(uint32_t *words, size_t bytes) {
  for (size_t at = 0; at < bytes / sizeof *words; at += 512) words[at] = (uint32_t)at;
}

static void require_filled(const uint32_t *words, size_t bytes) {
  for (size_t at = 0; at < bytes / sizeof *words; at += 512) REQUIRE(words[at] == (uint32_t)at);
}

/* Grown past a live neighbour: pages are moved, not bytes; copied where the kernel cannot. */
CHILD_TESTS(grow_by_moving, bool, can_move, true, false) {
  start_library();
  if (!can_move) os_fake_fail(1u << OS_CALL_MOVE_PAGES, 1, UINT64_MAX);
  uint32_t *block = must_malloc(8 * MIB);
  void *wall = must_malloc(8 * MIB);
  fill(block, 8 * MIB);
  for (size_t size = 12 * MIB; size <= 40 * MIB; size += 7 * MIB) {
    void *next_wall = must_malloc(2 * MIB);
    block = hak_realloc(block, size);
    REQUIRE(block);
    require_filled(block, 8 * MIB);
    hak_free(next_wall);
  }
  REQUIRE((counted(COUNT_big_mremaps) > 0) == can_move);
  hak_free(wall);
  hak_free(block);
  hak_purge(true); /* heals the mappings that were moved */
  block = hak_calloc(1, 40 * MIB);
  for (size_t at = 0; at < 40 * MIB / 4; at += 1024) REQUIRE(block[at] == 0);
}

CHILD_TEST(refuse_the_impossible) {
  static const size_t sizes[] = {(size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX,
                                 SIZE_MAX - 65535, (size_t)1 << 47};
  for (unsigned index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    errno = 0;
    REQUIRE(!hak_malloc(sizes[index]) && errno == ENOMEM);
  }
  unsigned char *block = must_malloc(2 * MIB);
  block[2 * MIB - 1] = 9;
  errno = 0;
  REQUIRE(!hak_realloc(block, (size_t)1 << 47) && errno == ENOMEM && block[2 * MIB - 1] == 9);
}
