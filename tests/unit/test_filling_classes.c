/* Slab classes above 32 KiB: their blocks fill whole slabs, whose memory serves blocks of all other
 * sizes. */
#include "heaps.h"
#include "map/size_class.h"

BEFORE(child) { start_library(); }
enum { BLOCKS = 400, FIRST_CLASS = FITTED_CLASS_FIRST - FILLING_CLASS_COUNT };

static void *blocks[2 * BLOCKS];

static void take(size_t size, unsigned count) {
  for (unsigned index = 0; index < count; index++) blocks[index] = must_malloc(size);
}

static void give(unsigned count) {
  for (unsigned index = 0; index < count; index++) hak_free(blocks[index]);
}

/* What was blocks of 60 KiB becomes blocks of 33 KiB, and the other way round. */
CHILD_TEST(change_sizes) {
  take(60 << 10, BLOCKS);
  uint64_t before_bytes = look().mapped_bytes;
  give(BLOCKS);
  take(33 << 10, BLOCKS * 7 / 4 - 7);
  REQUIRE(look().mapped_bytes <= before_bytes);
  give(BLOCKS * 7 / 4 - 7);
  take(60 << 10, BLOCKS - 4);
  REQUIRE(look().mapped_bytes <= before_bytes);
}

/* Little of a slab is nobody's: at most a unit for each block, and one. */
BARE_TEST(fill_their_slabs) {
  for (unsigned class = FIRST_CLASS; class < FITTED_CLASS_FIRST; class ++) {
    const struct slab_shape *shape = &slab_shapes[class];
    size_t slab_bytes = shape->slot_count * GRANULE_BYTES;
    REQUIRE(slab_bytes - (size_t)shape->capacity * shape->block_bytes <
            ((size_t)shape->capacity + 1) * FILLING_UNIT_BYTES);
  }
}

/* As programs touch blocks at the same places, neighbours begin at different lines of their first
 * pages. */
CHILD_TEST(begin_at_different_lines) {
  enum { PAGE_BYTES = 4096, LINE_BYTES = 64 };
  for (unsigned class = FIRST_CLASS; class < FITTED_CLASS_FIRST; class ++) {
    bool is_used[PAGE_BYTES / LINE_BYTES] = {false};
    unsigned lines = 0, capacity = slab_shapes[class].capacity;
    take(class_bytes(class), 4 * capacity);
    for (unsigned index = 0; index < 4 * capacity; index++) {
      size_t line = (uintptr_t)blocks[index] % PAGE_BYTES / LINE_BYTES;
      lines += !is_used[line];
      is_used[line] = true;
    }
    REQUIRE(lines == capacity);
    give(4 * capacity);
  }
}

/* No slab block is aligned as a page is: such blocks are ranges. */
CHILD_TEST(align) {
  for (size_t alignment = 16; alignment <= (size_t)256 << 10; alignment *= 2)
    for (size_t size = STEPPED_MAX_BYTES - 64; size <= (size_t)70 << 10; size += 1237) {
      char *block = hak_aligned_alloc(alignment, size);
      REQUIRE(block && (uintptr_t)block % alignment == 0);
      REQUIRE(hak_malloc_usable_size(block) >= size);
      memset(block, 1, size);
      hak_free(block);
    }
}

/* A block that shrinks to a quarter stays where it is, so that it can grow again. */
CHILD_TEST(stay_when_they_shrink) {
  char *block = must_malloc(42 << 10);
  memset(block, 7, 42 << 10);
  for (unsigned round = 0; round < 10; round++) {
    REQUIRE(hak_realloc(block, 20 << 10) == block);
    REQUIRE(hak_realloc(block, 42 << 10) == block);
  }
  char *moved = hak_realloc(block, 5 << 10);
  REQUIRE(moved != block && moved[0] == 7 && moved[(5 << 10) - 1] == 7);
  hak_free(moved);
}

/* Also of blocks whose alignment alone makes them Large or Big. */
CHILD_TEST(are_freed_with_their_sizes) {
  static const size_t sizes[] = {1, 463, 33 << 10, 61000, 65408, 65409, 70000};
  for (size_t alignment = 16; alignment <= (size_t)4 << 20; alignment *= 2)
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
      void *block = hak_aligned_alloc(alignment, sizes[index]);
      REQUIRE(block);
      hak_free_aligned_sized(block, alignment, sizes[index]);
    }
}
