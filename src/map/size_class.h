/* size_class.h: the sizes hakmem hands out.
 *
 *   class  0        8 bytes
 *          1 –  8   16, 32, … 128            16-byte steps
 *          9 – 20   160 … 1024               4 per doubling      Tiny ends here
 *         21 – 40   1280 … 32768             4 per doubling      Mid
 *         41 – 44   37376 … 65408            7, 6, 5, 4 a slab   Mid
 *         45 – 48   160 … 8192               fitted: made while the program runs
 *         49 – 64   124 KiB … 1 MiB          one per granule     Large, never in slabs
 *
 * Four steps per doubling bound the rounding loss by 25 %, 12 % on average over uniform sizes.
 * Every size but the first is a multiple of 16, so natural alignment needs no thought. The last
 * slab classes fill their slabs, and are not multiples of a page: neighbours begin at different
 * lines (colour_bytes).
 *
 * Large and Big blocks have their colour: 4 KiB of the last granule are room for it, so
 * that a block may begin anywhere in its first page.
 *
 * A fitted class serves the requests of another class up to a size that most of them have
 * (cache/fitted.h, docs/decisions/0049). It has size 0 until it is made, and is never unmade; a
 * block keeps the class that it was allocated in.
 *
 * Law: class_of_size(class_bytes(c)) == c, and class_bytes(class_of_size(size)) never decreases
 * with the size. */
#ifndef HAK_MAP_SIZE_CLASS_H
#define HAK_MAP_SIZE_CLASS_H

#include "base/atomic.h"
#include "base/bits.h"

#define GRANULE_SHIFT 16
#define GRANULE_BYTES ((size_t)1 << GRANULE_SHIFT) /* 64 KiB: the unit of ownership */

#define TINY_MAX_BYTES ((size_t)1024)
#define STEPPED_MAX_BYTES ((size_t)32 << 10) /* the last of the classes that are 4 per doubling */
#define MID_MAX_BYTES ((size_t)65408)
#define LARGE_MAX_BYTES ((size_t)1 << 20)
#define REQUEST_MAX_BYTES ((size_t)PTRDIFF_MAX)

enum {
  TINY_CLASS_COUNT = 21,
  SLAB_CLASS_COUNT = 49, /* Tiny, Mid and fitted: the classes that live in slabs */
  FITTED_CLASS_COUNT = 4,
  FITTED_CLASS_FIRST = SLAB_CLASS_COUNT - FITTED_CLASS_COUNT,
  LARGE_CLASS_COUNT = 16,
  CLASS_COUNT = SLAB_CLASS_COUNT + LARGE_CLASS_COUNT,
  FITTED_MAX_BYTES = 8 << 10, /* a slab of one slot has at least 8 of them */
  TINY_TABLE_ENTRIES = TINY_MAX_BYTES / 8 + 1,
  MID_TABLE_ENTRIES = (FITTED_MAX_BYTES - TINY_MAX_BYTES) / 16,
};

/* Indexed by (size + 7) / 8 for sizes up to TINY_MAX_BYTES; by (size - 1) / 16 from TINY_MAX_BYTES
 * on, up to FITTED_MAX_BYTES. An entry is the class's place, its number times PLACES_A_CLASS: where
 * its magazine lies, in words, which an instruction's address multiplies by 8, so that fast paths
 * need not. The owner map has it, too (map/window.h). */
enum { PLACES_A_CLASS = 4, PLACES_END = SLAB_CLASS_COUNT * PLACES_A_CLASS };
extern ATOMIC(uint16_t) tiny_class_table[TINY_TABLE_ENTRIES] NEAR;
extern ATOMIC(uint16_t) mid_class_table[MID_TABLE_ENTRIES] NEAR;
/* Block size of each class; 0 of a fitted one that is not made. */
extern ATOMIC(uint32_t) class_block_bytes[CLASS_COUNT];

INLINE bool class_is_fitted(unsigned class) {
  return class - FITTED_CLASS_FIRST < FITTED_CLASS_COUNT;
}
INLINE size_t class_bytes(unsigned class) {
  return load_relaxed(&class_block_bytes[class]); /* ordered by whatever gave the class */
}

/* For sizes up to FITTED_MAX_BYTES. */
INLINE ATOMIC(uint16_t) *class_entry_of(size_t size) {
  if (size <= TINY_MAX_BYTES) return &tiny_class_table[(size + 7) >> 3];
  return &mid_class_table[((size - 1) >> 4) - TINY_MAX_BYTES / 16];
}

/* Fast paths look for a magazine by these. relaxed: where the magazine is empty, slab_class_of is
 * asked. */
INLINE size_t tiny_place_of_size(size_t size) {
  return load_short_relaxed(&tiny_class_table[(size + 7) >> 3]);
}
/* For sizes in (TINY_MAX_BYTES, FITTED_MAX_BYTES]. */
INLINE size_t mid_place_of_size(size_t size) {
  return load_short_relaxed(&mid_class_table[((size - 1) >> 4) - TINY_MAX_BYTES / 16]);
}
/* The class without fitted ones, for sizes in (128, STEPPED_MAX_BYTES]: two bits below the highest
 * one choose the step. */
INLINE unsigned stepped_class_of_size(size_t size) {
  size_t last = size - 1;
  unsigned top = highest_bit(last);
  return (unsigned)(last >> (top - 2)) + 4 * top - (4 * 10 + 4 - TINY_CLASS_COUNT);
}

/* For sizes in (STEPPED_MAX_BYTES, MID_MAX_BYTES]: 7, 6, 5 and 4 blocks fill a slab of 256 KiB up
 * to a few units, so that no size is a multiple of a page. */
enum { FILLING_UNIT_BYTES = 128, FILLING_CLASS_COUNT = 4 };
#define FILLING_CLASS_BYTES(blocks) \
  ((((size_t)256 << 10) - 1) / (blocks) / FILLING_UNIT_BYTES * FILLING_UNIT_BYTES)
INLINE unsigned filling_class_of_size(size_t size) {
  unsigned steps = (unsigned)(size > FILLING_CLASS_BYTES(7)) +
                   (unsigned)(size > FILLING_CLASS_BYTES(6)) +
                   (unsigned)(size > FILLING_CLASS_BYTES(5));
  return FITTED_CLASS_FIRST - FILLING_CLASS_COUNT + steps;
}

/* Where in its first page a Large or Big block begins.
 *
 * Blocks that all begin at a granule share a few sets of every cache for their pages' first lines,
 * so that first writes (headers, counts, one word a page) evict one another. So neighbouring blocks
 * begin at different lines of their first page (slab colouring, after J. Bonwick, 1994). Measured:
 * docs/decisions/0010. */
enum {
  COLOUR_ROOM_BYTES = 4096,
  COLOUR_STEP_BYTES = 128,
  COLOUR_COUNT = COLOUR_ROOM_BYTES / COLOUR_STEP_BYTES
};
/* For a block whose range begins at `granule`. It depends on the place alone, so that a reused
 * range is touched in the same lines again. */
INLINE size_t colour_bytes(size_t granule, size_t alignment_bytes) {
  if (alignment_bytes > COLOUR_STEP_BYTES) return 0;
  return granule % COLOUR_COUNT * COLOUR_STEP_BYTES;
}

/* Granules that hold a Large or Big block of `size` bytes wherever in its first page it begins. */
INLINE size_t granules_of_size(size_t size) {
  return (size + COLOUR_ROOM_BYTES + GRANULE_BYTES - 1) >> GRANULE_SHIFT;
}
/* The largest block that fits into the granules. */
INLINE size_t size_of_granules(size_t granules) {
  return (granules << GRANULE_SHIFT) - COLOUR_ROOM_BYTES;
}

/* Bounds of a Large block's range, however small the block: the request is above a granule, or its
 * alignment is. */
enum { LARGE_GRANULES_MIN = 2, LARGE_GRANULES_MAX = LARGE_GRANULES_MIN + LARGE_CLASS_COUNT - 1 };
INLINE size_t large_granules_for(size_t size) {
  size_t granules = granules_of_size(size);
  return granules < LARGE_GRANULES_MIN ? LARGE_GRANULES_MIN : granules;
}
INLINE unsigned large_class_of_granules(size_t granules) {
  return SLAB_CLASS_COUNT - LARGE_GRANULES_MIN + (unsigned)granules;
}
INLINE unsigned large_granules_of_class(unsigned class) {
  return class - SLAB_CLASS_COUNT + LARGE_GRANULES_MIN;
}
/* For sizes in (MID_MAX_BYTES, LARGE_MAX_BYTES]. */
INLINE unsigned large_class_of_size(size_t size) {
  return large_class_of_granules(granules_of_size(size));
}

/* The smallest slab class for sizes up to MID_MAX_BYTES whose blocks have the alignment;
 * SLAB_CLASS_COUNT when there is none. A class has it if its size is a multiple of it, because
 * slabs begin at granules; and a multiple of it is a class of its own, or falls between steps that
 * are multiples of it. */
INLINE unsigned slab_class_of(size_t size, size_t alignment) {
  if (UNLIKELY(alignment > STEPPED_MAX_BYTES)) return SLAB_CLASS_COUNT;
  size_t bytes = round_up(size ? size : 1, alignment);
  if (UNLIKELY(bytes > STEPPED_MAX_BYTES && alignment > FILLING_UNIT_BYTES))
    return SLAB_CLASS_COUNT;
  if (UNLIKELY(bytes > STEPPED_MAX_BYTES)) return filling_class_of_size(bytes);
  if (UNLIKELY(bytes > FITTED_MAX_BYTES)) return stepped_class_of_size(bytes);
  /* acquire: the class's shape; pairs with class_make_fitted */
  unsigned class = load_acquire(class_entry_of(bytes)) / PLACES_A_CLASS;
  bool is_unaligned = class_is_fitted(class) && class_bytes(class) & (alignment - 1);
  return UNLIKELY(is_unaligned) ? stepped_class_of_size(bytes) : class;
}

/* For any size: SLAB_CLASS_COUNT when no slab serves it. */
INLINE unsigned slab_class_for(size_t size, size_t alignment) {
  return size > MID_MAX_BYTES ? SLAB_CLASS_COUNT : slab_class_of(size, alignment);
}

/* The counterpart for sizes up to LARGE_MAX_BYTES: Large blocks begin at granules. */
INLINE unsigned class_of_aligned(size_t size, size_t alignment) {
  return size > MID_MAX_BYTES ? large_class_of_size(size) : slab_class_of(size, alignment);
}
INLINE unsigned class_of_size(size_t size) { return class_of_aligned(size, 1); }

/* A slab of the class: 1, 2 or 4 slots of a granule each, enough for at least 8 blocks, or, above
 * 32 KiB, for 4. A thread that frees blocks in random order reads this instead of the slab's
 * record: one cache line less for each block. */
struct slab_shape {
  uint64_t inverse; /* of block_bytes' odd part */
  uint32_t block_bytes;
  uint16_t capacity; /* blocks */
  uint8_t shift;     /* the lowest set bit of block_bytes */
  uint8_t slot_count;
  uint8_t word_count; /* of a bitmap of its blocks */
};
extern struct slab_shape slab_shapes[SLAB_CLASS_COUNT];

/* Index of the block that begins at a slab's base + offset. At least the capacity when none begins
 * there: in the middle of a block, in the slab's unused tail, outside the slab. */
INLINE size_t slab_block_index(const struct slab_shape *shape, size_t offset) {
  return divide_exactly(offset, shape->inverse, shape->shift);
}

/* Whether a block begins at an offset in a slab of one slot, proved without its index: `factor` is
 * 2^64 / block_bytes rounded up. Modulo 2^64 its product with index * block_bytes is the rounding
 * error times the index, below the bound; for any other number it is at least the bound (after D.
 * Lemire et al., "Faster remainder by direct computation", 2019). For slabs with more slots the
 * bound is 0, so the answer is false. */
struct slab_starts {
  uint64_t factor;
  uint32_t bound, block_bytes;
};
extern struct slab_starts slab_starts[SLAB_CLASS_COUNT];

INLINE bool slab_block_starts_at(const struct slab_starts *starts, size_t offset) {
  return offset * starts->factor < starts->bound;
}

INLINE unsigned slots_of_class(unsigned class) { return slab_shapes[class].slot_count; }

/* A class's requests are above this, up to class_bytes; those that a fitted class serves now may
 * have come to it before. */
INLINE size_t class_floor_bytes(unsigned class) {
  if (class_is_fitted(class)) return class_bytes(stepped_class_of_size(class_bytes(class)) - 1);
  unsigned below = class == SLAB_CLASS_COUNT ? FITTED_CLASS_FIRST : class;
  return below ? class_bytes(below - 1) : 0;
}
/* Makes a fitted class of blocks of `bytes`, a multiple of 16 up to FITTED_MAX_BYTES; false where
 * that is a class already, all are made, another thread makes one, or the system refuses. */
bool class_make_fitted(uint32_t bytes);

/* "tiny", "mid" or "large": the tier's name as reports spell it. */
const char *class_tier_name(unsigned class);

#endif
