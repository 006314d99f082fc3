/* wipe.h: a freed block of a slab reads as zero, and is looked at when it is used again (hardened mode).
 *
 * What has more than WIPED_WHOLLY_BYTES is wiped at both ends only at HAKMEM_HARDEN=1: 32 KiB cost as much as 100 calls of
 * malloc. */
#ifndef HAK_GUARD_WIPE_H
#define HAK_GUARD_WIPE_H

#include <string.h>

#include "base/wide.h"
#include "config/options.h"
#include "guard/trailer.h"

enum { WIPED_WHOLLY_BYTES = 256, WIPED_END_BYTES = 64 };

INLINE bool is_wiped_wholly(size_t block_bytes) {
  return block_bytes <= WIPED_WHOLLY_BYTES || options.harden > 1;
}

/* A call of memset is worth its while from here on. */
enum { WIPED_INLINE_BYTES = 512 };

INLINE void wipe_bytes(uintptr_t begin, size_t bytes) {
  if (LIKELY(bytes <= WIPED_INLINE_BYTES))
    wide_clear(begin, begin + bytes);
  else
    memset((void *)begin, 0, bytes);
}

/* The trailer last, and in one store: others may be looking at it. */
INLINE void wipe_block(uintptr_t block, size_t block_bytes) {
  uintptr_t last = block + block_bytes - WIDE_BYTES;
  if (LIKELY(is_wiped_wholly(block_bytes))) {
    wipe_bytes(block, last - block);
  } else {
    wide_clear(block, block + WIPED_END_BYTES);
    wide_clear(block + block_bytes - WIPED_END_BYTES, last);
  }
  *(uint64_t *)last = 0; /* NOLINT: blocks are made of addresses */
  trailer_erase(block, block_bytes);
}

/* Whether all that was wiped still reads as 0. */
INLINE bool wipe_is_whole(uintptr_t block, size_t block_bytes) {
  uintptr_t end = block + block_bytes;
  if (LIKELY(is_wiped_wholly(block_bytes))) return wide_are_zero(block, end);
  return wide_are_zero(block, block + WIPED_END_BYTES) && wide_are_zero(end - WIPED_END_BYTES, end);
}

/* The first byte that is not; `block_bytes` when there is none. */
INLINE size_t wipe_find_written(uintptr_t block, size_t block_bytes) {
  if (is_wiped_wholly(block_bytes)) return find_nonzero(block, block_bytes);
  size_t written = find_nonzero(block, WIPED_END_BYTES), end = block_bytes - WIPED_END_BYTES;
  if (written < WIPED_END_BYTES) return written;
  return end + find_nonzero(block + end, WIPED_END_BYTES);
}

#endif
