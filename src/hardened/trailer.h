/* trailer.h: the canary of hardened blocks in slabs (HAKMEM_HARDEN), which also holds the requested
 * size and the maker.
 *
 *   block  [ requested bytes | slack: SLACK_BYTE … | trailer, 8 bytes ]
 *   trailer                                      | 1 | slack bytes : 16 | maker : 2 | check : 45 |
 *
 * The first bit is set, so that no trailer is an address of the program: else some would look like
 * pointers to live blocks (`hakmem leaks`).  The check is a keyed hash of the block's address,
 * slack and maker, so that it can be neither guessed nor copied from another block.  A write past
 * the requested bytes, of a single zero too, is seen when the block is freed, resized or asked for
 * its size.  It is written in one store, and so it is erased: a thread that checks another's block
 * sees it whole or sees 0, which is never a trailer. */
#ifndef HAK_HARDENED_TRAILER_H
#define HAK_HARDENED_TRAILER_H

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/wide.h"
#include "config/options.h"
#include "os/os.h"
#include "report/maker.h"

enum { TRAILER_BYTES = 8, SLACK_MAX_BYTES = UINT16_MAX };
enum { TRAILER_MAKER_SHIFT = 45, MAKER_BITS = 2, SLACK_BITS = 16, SLACK_BYTE = 0xD7 };
#define NO_ADDRESS (UINT64_C(1) << (MAKER_BITS + SLACK_BITS))
_Static_assert(SLACK_MAX_BYTES >> SLACK_BITS == 0, "a slack has room");
_Static_assert(TRAILER_MAKER_SHIFT + MAKER_BITS + SLACK_BITS == 63, "the mark is the first bit");

/* Draws the key; once, before the first block. */
void trailer_init(void);

struct trailer_key {
  uint64_t mask, factor; /* constant after trailer_init */
};
extern struct trailer_key trailer_key;

/* Takes the product's upper bits, which depend on all of the block's address. The lowest byte, the
 * first in memory, differs from those that most overflows write: a string's end, a letter, a small
 * number, all ones. */
INLINE uint64_t trailer_word(uintptr_t block, uint64_t slack_and_maker) {
  uint64_t check = ((block ^ trailer_key.mask) + slack_and_maker) * trailer_key.factor >>
                   (64 - TRAILER_MAKER_SHIFT);
  return slack_and_maker << TRAILER_MAKER_SHIFT | (check & ~UINT64_C(0x40)) | 0x81;
}
INLINE uint64_t trailer_word_for(uintptr_t block, size_t slack_bytes, enum maker maker) {
  return trailer_word(block, NO_ADDRESS | (uint64_t)slack_bytes << MAKER_BITS | maker);
}

/* Other threads may read it meanwhile: never torn. */
INLINE ATOMIC(uint64_t) *trailer_of(uintptr_t block, size_t capacity_bytes) {
  return (ATOMIC(uint64_t) *)(block + capacity_bytes - TRAILER_BYTES); /* NOLINT */
}

/* The first byte of a slack that was written since it was filled; `end` when none was. */
uintptr_t trailer_find_written(uintptr_t begin, uintptr_t end);

/* HAKMEM_HARDEN=1 fills and checks only the first bytes of a long slack: it may be a quarter of a
 * large block. */
enum { SLACK_CHECKED_BYTES = 64 };
INLINE uintptr_t trailer_slack_end(uintptr_t slack, size_t slack_bytes) {
  bool is_long = slack_bytes > SLACK_CHECKED_BYTES && options.harden == 1;
  return slack + (is_long ? SLACK_CHECKED_BYTES : slack_bytes);
}

/* Writes slack and trailer of a block of `capacity_bytes`, trailer included; the slack is at most
 * SLACK_MAX_BYTES. */
INLINE void trailer_write(uintptr_t block, size_t capacity_bytes, size_t requested_bytes,
                          enum maker maker) {
  size_t slack_bytes = capacity_bytes - TRAILER_BYTES - requested_bytes;
  uintptr_t slack = block + requested_bytes;
  ASSERT(slack_bytes <= SLACK_MAX_BYTES);
  memset((void *)slack, SLACK_BYTE, trailer_slack_end(slack, slack_bytes) - slack);
  store_relaxed(trailer_of(block, capacity_bytes), trailer_word_for(block, slack_bytes, maker));
}

#define SLACK_WORD (UINT64_C(0x0101010101010101) * SLACK_BYTE)

INLINE uint64_t trailer_load(uintptr_t address) {
  uint64_t word;
  memcpy(&word, (const void *)address, sizeof word);
  return word;
}
INLINE void trailer_store(uintptr_t address, uint64_t word) {
  memcpy((void *)address, &word, sizeof word);
}

/* As trailer_write, for a block that reads as zero, mostly in two stores that may overlap: a slack
 * below one word is written together with the bytes before it. */
INLINE void trailer_write_first(uintptr_t block, size_t capacity_bytes, size_t requested_bytes,
                                enum maker maker) {
  size_t slack_bytes = capacity_bytes - TRAILER_BYTES - requested_bytes;
  uintptr_t slack = block + requested_bytes, last = slack + slack_bytes - sizeof(uint64_t);
  if (LIKELY(slack_bytes - 1 < 2 * sizeof(uint64_t))) {
    bool is_short = slack_bytes < sizeof(uint64_t);
    trailer_store(is_short ? last : slack, SLACK_WORD);
    trailer_store(last, is_short ? SLACK_WORD << (64 - 8 * slack_bytes) : SLACK_WORD);
  } else if (slack_bytes) {
    wide_fill(slack, trailer_slack_end(slack, slack_bytes), SLACK_WORD);
  }
  store_relaxed(trailer_of(block, capacity_bytes), trailer_word_for(block, slack_bytes, maker));
}

/* Reads the requested bytes; false when the trailer was overwritten. */
INLINE bool trailer_read(uintptr_t block, size_t capacity_bytes, size_t *requested_bytes) {
  uint64_t word = load_relaxed(trailer_of(block, capacity_bytes));
  size_t slack_bytes = word >> (TRAILER_MAKER_SHIFT + MAKER_BITS) & low_bits(SLACK_BITS);
  if (word != trailer_word(block, word >> TRAILER_MAKER_SHIFT) ||
      slack_bytes > capacity_bytes - TRAILER_BYTES)
    return false;
  *requested_bytes = capacity_bytes - TRAILER_BYTES - slack_bytes;
  return true;
}

/* The block's maker, from a trailer that trailer_read accepts. */
INLINE enum maker trailer_maker(uintptr_t block, size_t capacity_bytes) {
  uint64_t word = load_relaxed(trailer_of(block, capacity_bytes));
  return (enum maker)(word >> TRAILER_MAKER_SHIFT & low_bits(MAKER_BITS));
}

/* Called for a freed block when all else is wiped. */
INLINE void trailer_erase(uintptr_t block, size_t capacity_bytes) {
  /* release: the block was wiped before; pairs with trailer_is_there. */
  store_release(trailer_of(block, capacity_bytes), 0);
}
/* Whether the block is live, or freed but not wiped yet. */
INLINE bool trailer_is_there(uintptr_t block, size_t capacity_bytes) {
  /* acquire: without a trailer the wiped block; pairs with trailer_erase. */
  uint64_t word = load_acquire(trailer_of(block, capacity_bytes));
  return word == trailer_word(block, word >> TRAILER_MAKER_SHIFT);
}
INLINE bool trailer_is_absent(uintptr_t block, size_t capacity_bytes) {
  return load_relaxed(trailer_of(block, capacity_bytes)) == 0;
}

/* The first byte past the requested ones that was written, counted from the block's start; 0 when
 * none. */
INLINE size_t trailer_find_overflow(uintptr_t block, size_t capacity_bytes,
                                    size_t requested_bytes) {
  size_t slack_bytes = capacity_bytes - TRAILER_BYTES - requested_bytes;
  uintptr_t slack = block + requested_bytes, end = trailer_slack_end(slack, slack_bytes);
  if (LIKELY(slack_bytes <= 2 * sizeof(uint64_t))) {
    if (!slack_bytes) return 0;
    bool is_short = slack_bytes < sizeof(uint64_t);
    uint64_t first = is_short ? 0 : trailer_load(slack) ^ SLACK_WORD;
    uint64_t last = trailer_load(end - sizeof last) ^ SLACK_WORD;
    if (LIKELY((first | (is_short ? last >> (64 - 8 * slack_bytes) : last)) == 0)) return 0;
  } else if (LIKELY(wide_is_filled(slack, end, SLACK_WORD))) {
    return 0;
  }
  uintptr_t written = trailer_find_written(slack, end);
  return written == end ? 0 : written - block;
}

/* The first byte that is not 0, counted from `begin`; `bytes` when there is none.  Whole words,
 * aligned. */
size_t find_nonzero(uintptr_t begin, size_t bytes);

#endif
