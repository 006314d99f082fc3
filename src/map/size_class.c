#include "map/size_class.h"

#include "os/os.h"

/* The place of the class of the sizes (8 (i-1), 8 i], and of (16 i, 16 (i+1)] above TINY_MAX_BYTES,
 * of a program without fitted classes. Constant expressions, so the fast path may use the tables
 * before anything has run. */
#define STEP16(i) (((i) + 1) / 2)
#define LOG2(bytes) CONSTANT_HIGHEST_BIT(bytes)
#define STEP4(last) \
  (int)(((last) >> (LOG2(last) - 2)) + 4 * LOG2(last) - (4 * 10 + 4 - TINY_CLASS_COUNT))
#define PLACE(class) ((uint16_t)((class) * PLACES_A_CLASS))
#define TINY_AT(i) PLACE((i) <= 1 ? 0 : (i) <= 16 ? STEP16(i) : STEP4((i)*8ull - 1))
#define MID_AT(i) PLACE(STEP4(TINY_MAX_BYTES + (i)*16ull))

#define ROW4(X, i) X(i), X((i) + 1), X((i) + 2), X((i) + 3)
#define ROW16(X, i) ROW4(X, i), ROW4(X, (i) + 4), ROW4(X, (i) + 8), ROW4(X, (i) + 12)
#define ROW64(X, i) ROW16(X, i), ROW16(X, (i) + 16), ROW16(X, (i) + 32), ROW16(X, (i) + 48)

SELDOM_WRITTEN ATOMIC(uint16_t) tiny_class_table[TINY_TABLE_ENTRIES] = {
    ROW64(TINY_AT, 0), ROW64(TINY_AT, 64), TINY_AT(128)};
SELDOM_WRITTEN ATOMIC(uint16_t) mid_class_table[MID_TABLE_ENTRIES] = {
    ROW64(MID_AT, 0),   ROW64(MID_AT, 64),  ROW64(MID_AT, 128), ROW64(MID_AT, 192),
    ROW64(MID_AT, 256), ROW64(MID_AT, 320), ROW64(MID_AT, 384),
};

#define DOUBLING(X, base) X((base) / 4 * 5), X((base) / 4 * 6), X((base) / 4 * 7), X((base)*2)
#define FILLING(X)                                                                 \
  X(FILLING_CLASS_BYTES(7)), X(FILLING_CLASS_BYTES(6)), X(FILLING_CLASS_BYTES(5)), \
      X(FILLING_CLASS_BYTES(4))
#define STEPS(X) X(8), X(16), X(32), X(48), X(64), X(80), X(96), X(112), X(128)
#define SLAB_CLASSES(X)                                                              \
  STEPS(X), DOUBLING(X, 128), DOUBLING(X, 256), DOUBLING(X, 512), DOUBLING(X, 1024), \
      DOUBLING(X, 2048), DOUBLING(X, 4096), DOUBLING(X, 8192), DOUBLING(X, 16384), FILLING(X)

/* As size_of_granules, in a constant expression; the last class's blocks end at LARGE_MAX_BYTES. */
#define LARGE(granules)                                         \
  ((granules)*GRANULE_BYTES > LARGE_MAX_BYTES ? LARGE_MAX_BYTES \
                                              : (granules)*GRANULE_BYTES - COLOUR_ROOM_BYTES)
#define LARGE4(first) LARGE(first), LARGE((first) + 1), LARGE((first) + 2), LARGE((first) + 3)

#define BYTES(bytes) (bytes)
#define UNMADE 0, 0, 0, 0
SELDOM_WRITTEN ATOMIC(uint32_t) class_block_bytes[CLASS_COUNT] = {
    SLAB_CLASSES(BYTES), UNMADE, LARGE4(2), LARGE4(6), LARGE4(10), LARGE4(14),
};

#define ODD_PART(bytes) ((bytes) >> CONSTANT_LOWEST_BIT(bytes))
/* As inverse_of_odd: each step doubles the number of correct bits, 5 at first. */
#define MORE_BITS(odd, inverse) ((inverse) * (2 - (uint64_t)(odd) * (inverse)))
#define BITS_10(odd) MORE_BITS(odd, ((uint64_t)(odd)*3) ^ 2)
#define BITS_20(odd) MORE_BITS(odd, BITS_10(odd))
#define BITS_40(odd) MORE_BITS(odd, BITS_20(odd))
#define INVERSE(odd) MORE_BITS(odd, BITS_40(odd))
#define SLOTS(bytes) ((bytes) <= GRANULE_BYTES / 8 ? 1 : (bytes) <= GRANULE_BYTES / 4 ? 2 : 4)
#define CAPACITY(bytes) (SLOTS(bytes) * GRANULE_BYTES / (bytes))
#define SHAPE(bytes)                                                                           \
  {                                                                                            \
    .inverse = INVERSE(ODD_PART(bytes)), .block_bytes = (bytes),                               \
    .capacity = (uint16_t)CAPACITY(bytes), .shift = (uint8_t)CONSTANT_LOWEST_BIT(bytes),       \
    .slot_count = (uint8_t)SLOTS(bytes), .word_count = (uint8_t)((CAPACITY(bytes) + 63) / 64), \
  }
SELDOM_WRITTEN struct slab_shape slab_shapes[SLAB_CLASS_COUNT] = {SLAB_CLASSES(SHAPE)};

#define FACTOR(bytes) (UINT64_MAX / (bytes) + 1)
/* The rounding error of one step; 0 if block_bytes is a power of two. */
#define ROUNDING(bytes) (FACTOR(bytes) * (bytes))
#define BOUND(bytes) (uint32_t)(ROUNDING(bytes) != 0 ? ROUNDING(bytes) * CAPACITY(bytes) : 1)
#define STARTS(bytes)                                                       \
  {                                                                         \
    .factor = FACTOR(bytes), .bound = SLOTS(bytes) == 1 ? BOUND(bytes) : 0, \
    .block_bytes = (bytes),                                                 \
  }
SELDOM_WRITTEN struct slab_starts slab_starts[SLAB_CLASS_COUNT] = {SLAB_CLASSES(STARTS)};

/* The tables' page in libhakmem.so; elsewhere they are writable. */
static bool open_tables(void) {
  size_t page_bytes = os_page_bytes();
  return os_commit((void *)round_down((uintptr_t)tiny_class_table, page_bytes), page_bytes);
}

/* The bytes of a block for that size. */
static size_t bytes_served(uint32_t size) {
  return class_bytes(load_relaxed(class_entry_of(size)) / PLACES_A_CLASS);
}

bool class_make_fitted(uint32_t bytes) {
  static ATOMIC(bool) is_making;
  /* acquire: the classes that are there; pairs with the release below. A forked child that was cut
   * off in between makes no more. */
  if (exchange_acquire(&is_making, true)) return false;
  unsigned class = FITTED_CLASS_FIRST;
  while (class < SLAB_CLASS_COUNT && class_bytes(class)) class ++;
  bool is_new = class < SLAB_CLASS_COUNT && bytes_served(bytes) != bytes && open_tables();
  if (is_new) {
    slab_shapes[class] = (struct slab_shape)SHAPE(bytes);
    slab_starts[class] = (struct slab_starts)STARTS(bytes);
    store_relaxed(&class_block_bytes[class], bytes);
    /* release: the shape before an entry that names it; pairs with slab_class_of. */
    for (uint32_t size = bytes; bytes_served(size) >= bytes; size -= 8)
      store_release(class_entry_of(size), PLACE(class));
  }
  store_release(&is_making, false); /* release: the class before the next one is made */
  return is_new;
}

const char *class_tier_name(unsigned class) {
  if (class >= SLAB_CLASS_COUNT) return "large";
  return class_bytes(class) <= TINY_MAX_BYTES ? "tiny" : "mid";
}
