/* wide.h: memory 16 bytes at a time, in the processor's own vectors where it has them (SSE2, NEON).
 *
 * For a few vectors' worth of memory, where a call of memset would cost as much. Addresses and
 * sizes are multiples of 16. */
#ifndef HAK_BASE_WIDE_H
#define HAK_BASE_WIDE_H

#include "base/compiler.h"

enum { WIDE_BYTES = 16 };
typedef uint64_t wide __attribute__((vector_size(WIDE_BYTES), may_alias));
typedef wide wide_anywhere __attribute__((aligned(1), may_alias));

INLINE bool wide_is_zero(wide word) { return (word[0] | word[1]) == 0; }

enum { WIDE_LINE_BYTES = 4 * WIDE_BYTES };

/* Whether all bytes of [begin, end) are 0. */
INLINE bool wide_are_zero(uintptr_t begin, uintptr_t end) {
  wide any = {0, 0};
  for (; end - begin >= WIDE_LINE_BYTES; begin += WIDE_LINE_BYTES) {
    const wide *words = (const wide *)begin;
    any |= (words[0] | words[1]) | (words[2] | words[3]);
  }
  for (; begin < end; begin += sizeof any) any |= *(const wide *)begin;
  return wide_is_zero(any);
}

/* 16 to 64 bytes at any address, without an unpredictable branch: accesses may overlap. */
struct wide_line {
  wide_anywhere *words[WIDE_LINE_BYTES / WIDE_BYTES];
};
INLINE struct wide_line wide_line(uintptr_t begin, uintptr_t end) {
  uintptr_t last = end - WIDE_BYTES, second = begin + WIDE_BYTES, last_but_one = last - WIDE_BYTES;
  second = second < last ? second : last;
  last_but_one = last_but_one > begin ? last_but_one : begin;
  return (struct wide_line){{(wide_anywhere *)begin, (wide_anywhere *)second,
                             (wide_anywhere *)last_but_one, (wide_anywhere *)last}};
}
INLINE void wide_set_line(uintptr_t begin, uintptr_t end, wide pattern) {
  struct wide_line line = wide_line(begin, end);
  *line.words[0] = *line.words[1] = *line.words[2] = *line.words[3] = pattern;
}
/* Non-zero where the memory differs from the pattern. */
INLINE wide wide_difference_of_line(uintptr_t begin, uintptr_t end, wide pattern) {
  struct wide_line line = wide_line(begin, end);
  return ((*line.words[0] ^ pattern) | (*line.words[1] ^ pattern)) |
         ((*line.words[2] ^ pattern) | (*line.words[3] ^ pattern));
}
#define WIDE_ZERO ((wide){0, 0})

INLINE void wide_clear(uintptr_t begin, uintptr_t end) {
  for (; end - begin >= WIDE_LINE_BYTES; begin += WIDE_LINE_BYTES) {
    wide *words = (wide *)begin;
    words[0] = words[1] = words[2] = words[3] = WIDE_ZERO;
  }
  for (; begin < end; begin += WIDE_BYTES) *(wide *)begin = WIDE_ZERO;
}

/* [begin, end) is any 16 bytes or more; the last 16 may overlap those before. `word` is one byte,
 * repeated. */
INLINE void wide_fill(uintptr_t begin, uintptr_t end, uint64_t word) {
  const wide pattern = {word, word};
  if (LIKELY(end - begin <= WIDE_LINE_BYTES)) {
    wide_set_line(begin, end, pattern);
    return;
  }
  for (; end - begin > WIDE_BYTES; begin += WIDE_BYTES) *(wide_anywhere *)begin = pattern;
  *(wide_anywhere *)(end - WIDE_BYTES) = pattern;
}
INLINE bool wide_is_filled(uintptr_t begin, uintptr_t end, uint64_t word) {
  const wide pattern = {word, word};
  if (LIKELY(end - begin <= WIDE_LINE_BYTES))
    return wide_is_zero(wide_difference_of_line(begin, end, pattern));
  wide any = *(const wide_anywhere *)(end - WIDE_BYTES) ^ pattern;
  for (; end - begin > WIDE_BYTES; begin += WIDE_BYTES)
    any |= *(const wide_anywhere *)begin ^ pattern;
  return wide_is_zero(any);
}

#endif
