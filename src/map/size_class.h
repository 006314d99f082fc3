/* size_class.h: the sizes hakmem hands out.
 *
 *   class  0        8 bytes
 *          1 –  8   16, 32, … 128            16-byte steps
 *          9 – 20   160 … 1024               4 per doubling      Tiny ends here (T1)
 *         21 – 40   1280 … 32768             4 per doubling      Mid (M1)
 *         41 – 57   60 KiB … 1 MiB           one per granule     Large (L1), never in slabs
 *
 * Four steps per doubling bound the rounding loss by 25 %, 12 % on average over uniform sizes.
 * Every size but the first is a multiple of 16, so natural alignment needs no thought.
 *
 * Large and Big blocks have their colour (map/colour.h): 4 KiB of the last granule are room for it, so
 * that a block may begin anywhere in its first page.
 *
 * Law: class_of_size(class_bytes(c)) == c, and class_of_size never decreases. */
#ifndef HAK_MAP_SIZE_CLASS_H
#define HAK_MAP_SIZE_CLASS_H

#include "base/bits.h"

#define GRANULE_SHIFT 16
#define GRANULE_BYTES ((size_t)1 << GRANULE_SHIFT) /* 64 KiB: the unit of ownership */

#define TINY_MAX_BYTES ((size_t)1024)
#define MID_MAX_BYTES ((size_t)32 << 10)
#define LARGE_MAX_BYTES ((size_t)1 << 20)
#define REQUEST_MAX_BYTES ((size_t)PTRDIFF_MAX)

enum {
  TINY_CLASS_COUNT = 21,
  SLAB_CLASS_COUNT = 41, /* Tiny and Mid: the classes that live in slabs */
  LARGE_CLASS_COUNT = 17,
  CLASS_COUNT = SLAB_CLASS_COUNT + LARGE_CLASS_COUNT,
  TINY_TABLE_ENTRIES = TINY_MAX_BYTES / 8 + 1,
};

/* Indexed by (size + 7) / 8 for sizes up to TINY_MAX_BYTES. */
extern const uint8_t tiny_class_table[TINY_TABLE_ENTRIES];
/* Block size of each class. */
extern const uint32_t class_block_bytes[CLASS_COUNT];

INLINE unsigned tiny_class_of_size(size_t size) { return tiny_class_table[(size + 7) >> 3]; }

/* For sizes in (TINY_MAX_BYTES, MID_MAX_BYTES]: two bits below the highest one choose the step. */
INLINE unsigned mid_class_of_size(size_t size) {
  size_t last = size - 1;
  unsigned top = highest_bit(last);
  return (unsigned)(last >> (top - 2)) + 4 * top - (4 * 10 + 4 - TINY_CLASS_COUNT);
}

enum { COLOUR_ROOM_BYTES = 4096 };

/* Granules that hold a Large or Big block of `size` bytes wherever in its first page it begins. */
INLINE size_t granules_of_size(size_t size) {
  return (size + COLOUR_ROOM_BYTES + GRANULE_BYTES - 1) >> GRANULE_SHIFT;
}
/* The largest block that they hold. */
INLINE size_t size_of_granules(size_t granules) {
  return (granules << GRANULE_SHIFT) - COLOUR_ROOM_BYTES;
}

/* For sizes in (MID_MAX_BYTES, LARGE_MAX_BYTES]. */
INLINE unsigned large_class_of_size(size_t size) {
  return SLAB_CLASS_COUNT - 1 + (unsigned)granules_of_size(size);
}

INLINE unsigned class_of_size(size_t size) {
  if (size <= TINY_MAX_BYTES) return tiny_class_of_size(size);
  return size <= MID_MAX_BYTES ? mid_class_of_size(size) : large_class_of_size(size);
}

/* The smallest slab class for sizes up to MID_MAX_BYTES whose blocks have the alignment; SLAB_CLASS_COUNT when it is
 * above MID_MAX_BYTES.  A class has it whose size is a multiple of it, because slabs begin at granules. */
unsigned slab_class_of(size_t size, size_t alignment);

INLINE size_t large_class_granules(unsigned class) { return class - SLAB_CLASS_COUNT + 1; }

INLINE size_t class_bytes(unsigned class) { return class_block_bytes[class]; }

/* "tiny", "mid" or "large": the tier's name as reports spell it. */
const char *class_tier_name(unsigned class);

#endif
