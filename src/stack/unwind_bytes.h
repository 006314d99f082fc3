/* unwind_bytes.h: reading numbers out of .eh_frame, never past their record's end. */
#ifndef HAK_STACK_UNWIND_BYTES_H
#define HAK_STACK_UNWIND_BYTES_H

#include <string.h>

#include "base/compiler.h"

/* Reads beyond the end return 0 and leave nothing. */
struct unwind_bytes {
  const uint8_t *at, *end;
};

INLINE size_t bytes_left(const struct unwind_bytes *bytes) {
  return (size_t)(bytes->end - bytes->at);
}

INLINE void bytes_skip(struct unwind_bytes *bytes, uint64_t count) {
  bytes->at = count < bytes_left(bytes) ? bytes->at + count : bytes->end;
}

/* The next `count` bytes as a separate part; skips them. */
INLINE struct unwind_bytes bytes_part(struct unwind_bytes *bytes, uint64_t count) {
  struct unwind_bytes part = {.at = bytes->at};
  bytes_skip(bytes, count);
  part.end = bytes->at;
  return part;
}

INLINE uint64_t bytes_take(struct unwind_bytes *bytes, size_t count) {
  uint64_t value = 0;
  if (bytes->at && count <= bytes_left(bytes)) memcpy(&value, bytes->at, count);
  bytes_skip(bytes, count);
  return value;
}

INLINE uint8_t bytes_take_one(struct unwind_bytes *bytes) { return (uint8_t)bytes_take(bytes, 1); }

/* A signed number of 1, 2, 4 or 8 bytes. */
INLINE int64_t bytes_take_signed(struct unwind_bytes *bytes, size_t count) {
  unsigned unused_bits = (64 - 8 * (unsigned)count) % 64;
  return (int64_t)(bytes_take(bytes, count) << unused_bits) >> unused_bits;
}

/* Seven bits a byte, the lowest first (LEB128).  Bits beyond 64 are lost. */
static inline uint64_t bytes_take_leb(struct unwind_bytes *bytes, unsigned *bits) {
  uint64_t value = 0;
  uint8_t byte = 0x80;
  for (*bits = 0; byte & 0x80 && bytes->at < bytes->end; *bits += 7) {
    byte = bytes_take_one(bytes);
    if (*bits < 64) value |= (uint64_t)(byte & 0x7f) << *bits;
  }
  return value;
}

static inline uint64_t bytes_take_unsigned_leb(struct unwind_bytes *bytes) {
  unsigned bits;
  return bytes_take_leb(bytes, &bits);
}

static inline int64_t bytes_take_signed_leb(struct unwind_bytes *bytes) {
  unsigned bits;
  uint64_t value = bytes_take_leb(bytes, &bits);
  if (bits && bits < 64 && value >> (bits - 1) & 1) value |= UINT64_MAX << bits;
  return (int64_t)value;
}

#endif
