/* src/ranges/big: Large and Big blocks that grow and shrink where they are. */
#include "ranges/big.h"

#include "heaps.h"
#include "ranges/large.h"

BEFORE(child) { start_library(); }

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static uint64_t live_bytes(void) {
  return load_relaxed(&totals.large_live_bytes) + load_relaxed(&totals.big_live_bytes);
}

static void fill(unsigned char *block, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 61) block[at] = (unsigned char)(at * 7);
}

static void require_filled(const unsigned char *block, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 61) REQUIRE(block[at] == (unsigned char)(at * 7));
}

/* With nobody behind it a block grows through all sizes without moving, and shrinks again. */
CHILD_TEST(cross_the_tiers) {
  hak_free(must_malloc(8 * MIB)); /* room */
  unsigned char *block = must_malloc(100 * KIB);
  fill(block, 100 * KIB);
  for (size_t size = 100 * KIB; size < 5 * MIB; size += size / 3) {
    REQUIRE(hak_realloc(block, size) == block);
    REQUIRE(hak_malloc_usable_size(block) >= size);
    REQUIRE(live_bytes() == hak_malloc_usable_size(block));
    REQUIRE((load_relaxed(&totals.big_live_bytes) != 0) == (size > LARGE_MAX_BYTES));
    require_filled(block, 100 * KIB);
  }
  REQUIRE(hak_expand(block, 2 * MIB) == block &&
          load_relaxed(&totals.big_live_bytes) == hak_good_size(2 * MIB));
  REQUIRE(hak_realloc(block, 500 * KIB) == block &&
          load_relaxed(&totals.large_live_bytes) == hak_good_size(500 * KIB));
  REQUIRE(load_relaxed(&totals.big_live_bytes) == 0);
  require_filled(block, 100 * KIB);
  hak_free(block);
  hak_purge(true);
  REQUIRE(live_bytes() == 0);
}

/* Who outgrew his place gets one with room behind it, though another fits more tightly. */
CHILD_TEST(grow_on_after_a_move) {
  hak_free(must_malloc(8 * MIB)); /* what follows lies side by side in it */
  unsigned char *block = must_malloc(500 * KIB);
  must_malloc(70 * KIB);
  unsigned char *tight = must_malloc(1400 * KIB);
  must_malloc(70 * KIB);
  unsigned char *roomy = must_malloc(2500 * KIB);
  must_malloc(70 * KIB);
  fill(block, 500 * KIB);
  hak_free(tight);
  hak_free(roomy);
  unsigned char *moved = hak_realloc(block, 1300 * KIB);
  REQUIRE(granule_of((uintptr_t)moved) == granule_of((uintptr_t)roomy));
  REQUIRE(hak_realloc(moved, 1900 * KIB) == moved);
  require_filled(moved, 500 * KIB);
  unsigned char *other = must_malloc(1300 * KIB); /* who has not grown takes the tight one */
  REQUIRE(granule_of((uintptr_t)other) == granule_of((uintptr_t)tight));
}

CHILD_TEST(stop_at_a_neighbour) {
  unsigned char *block = must_malloc(300 * KIB), *wall = must_malloc(300 * KIB);
  REQUIRE(wall > block);
  REQUIRE(!hak_expand(block, 600 * KIB));
  fill(block, 300 * KIB);
  fill(wall, 300 * KIB);
  unsigned char *moved = hak_realloc(block, 600 * KIB);
  REQUIRE(moved != block);
  require_filled(moved, 300 * KIB);
  require_filled(wall, 300 * KIB);
  /* Purged and freed lately beside each other: both together are room enough. */
  hak_free(wall);
  hak_purge(true);
  REQUIRE(hak_expand(moved, 700 * KIB) == moved);
  hak_free(moved);
}

/* A block keeps its colour, whatever its size becomes: each has the room. */
CHILD_TEST(keep_the_colour) {
  unsigned with_colour = 0;
  for (unsigned index = 0; index < COLOUR_COUNT; index++) {
    unsigned char *block = must_malloc(256 * KIB);
    with_colour += (uintptr_t)block % GRANULE_BYTES != 0;
    fill(block, 256 * KIB);
    REQUIRE(hak_realloc(block, 100 * KIB) == block);
    REQUIRE(hak_malloc_usable_size(block) == 128 * KIB - COLOUR_ROOM_BYTES);
    require_filled(block, 100 * KIB);
  }
  REQUIRE(with_colour > 0);
}

static void *grow_and_free(void *block) {
  block = hak_realloc(block, 3 * MIB);
  hak_free(hak_realloc(block, 700 * KIB));
  return NULL;
}

/* Another thread's block, and one freed by a thread that is not its owner. */
CHILD_TEST(change_threads) {
  for (unsigned round = 0; round < 20; round++) on_a_thread(grow_and_free, must_malloc(100 * KIB));
  hak_purge(true);
  REQUIRE(live_bytes() <= MIB); /* what an ended thread's heap may still hold */
}

/* Grown over memory that held something, it is not taken for zero. */
CHILD_TEST(forget_that_it_was_zero) {
  for (unsigned round = 0; round < 8; round++) {
    unsigned char *block = must_malloc(100 * KIB), *dirt = must_malloc(900 * KIB);
    memset(dirt, 0xff, 900 * KIB);
    hak_free(dirt);
    block = hak_rezalloc(block, 900 * KIB);
    for (size_t at = 100 * KIB + GRANULE_BYTES; at < 900 * KIB; at += 97) REQUIRE(block[at] == 0);
    hak_free(block);
  }
}

/* Between two slab classes: it moves once, and is large enough from then on. */
CHILD_TEST(stay_in_a_larger_class) {
  unsigned char *small = must_malloc(20 * KIB), *block = hak_realloc(small, 42 * KIB);
  REQUIRE(block && block != small);
  for (unsigned turn = 0; turn < 10; turn++)
    REQUIRE(hak_realloc(block, (turn % 2 ? 42 : 20) * KIB) == block);
  REQUIRE(hak_realloc(block, 11 * KIB) == block);
  unsigned char *little = hak_realloc(block, 10 * KIB);
  REQUIRE(little && little != block);
}
