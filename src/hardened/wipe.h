/* wipe.h: a freed block of a slab reads as zero, and is checked when it is used again (hardened
 * mode).
 *
 * A block of more than WIPED_WHOLLY_BYTES is wiped only in the cache lines of its two ends at
 * HAKMEM_HARDEN=1, which malloc and free need anyway: each further line is a miss. */
#ifndef HAK_HARDENED_WIPE_H
#define HAK_HARDENED_WIPE_H

#include <string.h>

#include "base/wide.h"
#include "config/options.h"
#include "hardened/trailer.h"
#include "map/size_class.h"

enum { WIPED_WHOLLY_BYTES = 192, WIPED_LINE_BYTES = 64 };

INLINE bool is_wiped_wholly(size_t block_bytes) {
  return block_bytes <= WIPED_WHOLLY_BYTES || options.harden > 1;
}

/* Larger blocks have pages of their own, and closed ones around them. Opening and closing costs
 * more than a copy of 64 KiB, so that HAKMEM_HARDEN=1 checks the ends of blocks up to there. */
INLINE bool is_for_slab(size_t size) {
  return LIKELY(size <= STEPPED_MAX_BYTES - TRAILER_BYTES) ||
         (size <= MID_MAX_BYTES - TRAILER_BYTES && options.harden < 2);
}

/* Where the first bytes end and the last begin, at HAKMEM_HARDEN=1: at most 64 each, and where the
 * block is not wiped wholly only in the cache line of the first byte and in that of the last. */
INLINE uintptr_t wiped_front_end(uintptr_t block, size_t block_bytes) {
  uintptr_t line_end = round_down(block, WIPED_LINE_BYTES) + WIPED_LINE_BYTES;
  uintptr_t end = block_bytes < WIPED_LINE_BYTES ? block + block_bytes : block + WIPED_LINE_BYTES;
  return block_bytes > WIPED_WHOLLY_BYTES ? line_end : end;
}
INLINE uintptr_t wiped_tail_begin(uintptr_t end, size_t block_bytes) {
  uintptr_t line = round_down(end - 1, WIPED_LINE_BYTES);
  uintptr_t begin = block_bytes < WIPED_LINE_BYTES ? end - block_bytes : end - WIPED_LINE_BYTES;
  return block_bytes > WIPED_WHOLLY_BYTES ? line : begin;
}

/* Whether a block that is wiped wholly has bytes between its ends: a line at most. */
INLINE bool has_middle(size_t block_bytes) {
  return block_bytes > 2 * WIPED_LINE_BYTES && block_bytes <= WIPED_WHOLLY_BYTES;
}
_Static_assert((int)WIPED_WHOLLY_BYTES == 3 * WIPED_LINE_BYTES, "the ends and the middle");

/* From this size on a call of memset pays. */
enum { WIPED_INLINE_BYTES = 512 };

INLINE void wipe_bytes(uintptr_t begin, size_t bytes) {
  if (LIKELY(bytes <= WIPED_INLINE_BYTES))
    wide_clear(begin, begin + bytes);
  else
    memset((void *)begin, 0, bytes);
}

/* The trailer last, and in one store: other threads may be checking it (live.h). */
INLINE void wipe_block(uintptr_t block, size_t block_bytes) {
  uintptr_t end = block + block_bytes, last = end - WIDE_BYTES;
  if (UNLIKELY(options.harden > 1)) {
    wipe_bytes(block, last - block);
  } else if (LIKELY(block < last)) {
    uintptr_t front_end = wiped_front_end(block, block_bytes), most = last - WIDE_BYTES;
    uintptr_t tail_begin = wiped_tail_begin(end, block_bytes);
    if (has_middle(block_bytes)) wide_set_line(front_end, front_end + WIPED_LINE_BYTES, WIDE_ZERO);
    wide_set_line(block, front_end < last ? front_end : last, WIDE_ZERO);
    wide_set_line(tail_begin < most ? tail_begin : most, last, WIDE_ZERO);
  }
  *(uint64_t *)last = 0; /* NOLINT: blocks are made of addresses */
  trailer_erase(block, block_bytes);
}

/* Whether all that was wiped still reads as 0. */
INLINE bool wipe_is_whole(uintptr_t block, size_t block_bytes) {
  uintptr_t end = block + block_bytes;
  if (UNLIKELY(options.harden > 1)) return wide_are_zero(block, end);
  uintptr_t front_end = wiped_front_end(block, block_bytes);
  uintptr_t tail_begin = wiped_tail_begin(end, block_bytes);
  wide any = wide_difference_of_line(block, front_end, WIDE_ZERO) |
             wide_difference_of_line(tail_begin, end, WIDE_ZERO);
  if (has_middle(block_bytes))
    any |= wide_difference_of_line(front_end, front_end + WIPED_LINE_BYTES, WIDE_ZERO);
  return wide_is_zero(any);
}

/* The first wiped byte that is not 0; `block_bytes` when there is none. */
INLINE size_t wipe_find_written(uintptr_t block, size_t block_bytes) {
  if (is_wiped_wholly(block_bytes)) return find_nonzero(block, block_bytes);
  size_t front_bytes = wiped_front_end(block, block_bytes) - block;
  size_t written = find_nonzero(block, front_bytes);
  if (written < front_bytes) return written;
  size_t tail = wiped_tail_begin(block + block_bytes, block_bytes) - block;
  return tail + find_nonzero(block + tail, block_bytes - tail);
}

#endif
