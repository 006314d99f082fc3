#include "map/size_class.h"

/* The class of the sizes (8 (i-1), 8 i]: a constant expression, so the table is built at compile
 * time and the fast path may use it before anything has run. */
#define STEP16(i) (((i) + 1) / 2)
#define LOG2(bytes) CONSTANT_HIGHEST_BIT(bytes)
#define STEP4(last) \
  (int)(((last) >> (LOG2(last) - 2)) + 4 * LOG2(last) - (4 * 10 + 4 - TINY_CLASS_COUNT))
#define CLASS_AT(i) ((uint8_t)((i) <= 1 ? 0 : (i) <= 16 ? STEP16(i) : STEP4((i)*8ull - 1)))

#define ROW4(i) CLASS_AT(i), CLASS_AT((i) + 1), CLASS_AT((i) + 2), CLASS_AT((i) + 3)
#define ROW16(i) ROW4(i), ROW4((i) + 4), ROW4((i) + 8), ROW4((i) + 12)

RESIDENT_DATA const uint8_t tiny_class_table[TINY_TABLE_ENTRIES] = {
    ROW16(0),  ROW16(16), ROW16(32),  ROW16(48),     ROW16(64),
    ROW16(80), ROW16(96), ROW16(112), CLASS_AT(128),
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
RESIDENT_DATA const uint32_t class_block_bytes[CLASS_COUNT] = {
    SLAB_CLASSES(BYTES), LARGE4(2), LARGE4(6), LARGE4(10), LARGE4(14),
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
#define SHAPE(bytes)                                                                  \
  {                                                                                   \
    .inverse = INVERSE(ODD_PART(bytes)), .block_bytes = (bytes),                      \
    .capacity = (uint16_t)CAPACITY(bytes), .shift = CONSTANT_LOWEST_BIT(bytes),       \
    .slot_count = SLOTS(bytes), .word_count = (uint8_t)((CAPACITY(bytes) + 63) / 64), \
  }
RESIDENT_DATA const struct slab_shape slab_shapes[SLAB_CLASS_COUNT] = {SLAB_CLASSES(SHAPE)};

#define FACTOR(bytes) (UINT64_MAX / (bytes) + 1)
/* The rounding error of one step; 0 if block_bytes is a power of two. */
#define ROUNDING(bytes) (FACTOR(bytes) * (bytes))
#define BOUND(bytes) (ROUNDING(bytes) ? ROUNDING(bytes) * CAPACITY(bytes) : 1)
#define STARTS(bytes)                                                       \
  {                                                                         \
    .factor = FACTOR(bytes), .bound = SLOTS(bytes) == 1 ? BOUND(bytes) : 0, \
    .block_bytes = (bytes),                                                 \
  }
RESIDENT_DATA const struct slab_starts slab_starts[SLAB_CLASS_COUNT] = {SLAB_CLASSES(STARTS)};

const char *class_tier_name(unsigned class) {
  if (class < TINY_CLASS_COUNT) return "tiny";
  return class < SLAB_CLASS_COUNT ? "mid" : "large";
}
