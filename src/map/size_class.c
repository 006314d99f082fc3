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

const uint8_t tiny_class_table[TINY_TABLE_ENTRIES] = {
    ROW16(0),  ROW16(16), ROW16(32),  ROW16(48),     ROW16(64),
    ROW16(80), ROW16(96), ROW16(112), CLASS_AT(128),
};

#define DOUBLING(base) (base) / 4 * 5, (base) / 4 * 6, (base) / 4 * 7, (base)*2

/* As size_of_granules, in a constant expression; the last class's blocks end at LARGE_MAX_BYTES. */
#define LARGE(granules)                                         \
  ((granules)*GRANULE_BYTES > LARGE_MAX_BYTES ? LARGE_MAX_BYTES \
                                              : (granules)*GRANULE_BYTES - COLOUR_ROOM_BYTES)
#define LARGE4(first) LARGE(first), LARGE((first) + 1), LARGE((first) + 2), LARGE((first) + 3)

const uint32_t class_block_bytes[CLASS_COUNT] = {
    8,
    16,
    32,
    48,
    64,
    80,
    96,
    112,
    128,
    DOUBLING(128),
    DOUBLING(256),
    DOUBLING(512),
    DOUBLING(1024),
    DOUBLING(2048),
    DOUBLING(4096),
    DOUBLING(8192),
    DOUBLING(16384),
    LARGE4(1),
    LARGE4(5),
    LARGE4(9),
    LARGE4(13),
    LARGE(17),
};

unsigned slab_class_of(size_t size, size_t alignment) {
  if (alignment > MID_MAX_BYTES) return SLAB_CLASS_COUNT;
  unsigned class = class_of_size(size > alignment ? size : alignment);
  while (class_block_bytes[class] & (alignment - 1)) class ++; /* a power of two, at the latest */
  return class;
}

const char *class_tier_name(unsigned class) {
  if (class < TINY_CLASS_COUNT) return "tiny";
  return class < SLAB_CLASS_COUNT ? "mid" : "large";
}
