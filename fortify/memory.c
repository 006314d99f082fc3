/* memory.c: mem*, wmem*, b*. */
#include "fortify/memory.h"

#include <strings.h>
#include <wchar.h>

#include "fortify/check.h"

INLINE void copy(const char *function, void *target, const void *source, size_t bytes) {
  check_write(function, target, bytes);
  check_read(function, source, bytes);
  real_move(target, source, bytes);
}

/* Returns where the copy begins, or where it ends. */
INLINE void *copy_in_room(const char *function, void *target, const void *source, size_t count,
                          size_t unit_bytes, size_t room, bool returns_end) {
  size_t bytes = bytes_of(count, unit_bytes);
  check_room(count, room);
  copy(function, target, source, bytes);
  return (char *)target + (returns_end ? bytes : 0);
}
#define COPY(type, name, unit_bytes, returns_end)                                      \
  WITH_ROOM(type *, name, __##name##_chk,                                              \
            copy_in_room(#name, target, source, count, unit_bytes, room, returns_end), \
            type *target, const type *source, size_t count)

COPY(void, memcpy, 1, false)
COPY(void, memmove, 1, false)
COPY(void, mempcpy, 1, true)
COPY(wchar_t, wmemcpy, sizeof(wchar_t), false)
COPY(wchar_t, wmemmove, sizeof(wchar_t), false)
COPY(wchar_t, wmempcpy, sizeof(wchar_t), true)

void *__mempcpy(void *restrict, const void *restrict, size_t) EXPORT_ALIAS_OF(mempcpy);
EXPORT void bcopy(const void *source, void *target, size_t bytes) {
  copy("bcopy", target, source, bytes);
}

static void *loop_memchr(const void *begin, int byte, size_t bytes) {
  const unsigned char *at = begin;
  for (; bytes--; at++)
    if (*at == (unsigned char)byte) return (void *)(uintptr_t)at;
  return NULL;
}

INLINE void *real_find_byte(const void *begin, int byte, size_t bytes) {
  return REAL_OR(memchr, loop_memchr)(begin, byte, bytes);
}

/* Searches at most `bytes`; if the block ends before, only the bytes that it has. */
INLINE const void *find_byte(const char *function, const void *begin, int byte, size_t bytes) {
  size_t left = bytes_left(begin);
  if (LIKELY(bytes <= left)) return real_find_byte(begin, byte, bytes);
  const void *found = real_find_byte(begin, byte, left);
  if (found) return found;
  check_failed(function, begin, bytes, false, CALLER_ADDRESS());
  return real_find_byte(begin, byte, bytes);
}

EXPORT void *memccpy(void *restrict target, const void *restrict source, int last, size_t bytes) {
  const char *found = find_byte("memccpy", source, last, bytes);
  size_t copied = found ? (size_t)(found - (const char *)source) + 1 : bytes;
  check_write("memccpy", target, copied);
  real_move(target, source, copied);
  return found ? (char *)target + copied : NULL;
}

INLINE void *fill(const char *function, void *target, int byte, size_t bytes, size_t room) {
  check_room(bytes, room);
  check_write(function, target, bytes);
  return real_set(target, byte, bytes);
}

WITH_ROOM(void *, memset, __memset_chk, fill("memset", target, byte, bytes, room), void *target,
          int byte, size_t bytes)
EXPORT void bzero(void *target, size_t bytes) { fill("bzero", target, 0, bytes, SIZE_MAX); }

/* Called through a pointer that the compiler does not know: it is not left out. */
void __explicit_bzero_chk(void *target, size_t bytes, size_t room);
EXPORT void __explicit_bzero_chk(void *target, size_t bytes, size_t room) {
  fill("explicit_bzero", target, 0, bytes, room);
}
EXPORT void explicit_bzero(void *target, size_t bytes) {
  fill("explicit_bzero", target, 0, bytes, SIZE_MAX);
}

static wchar_t *loop_wmemset(wchar_t *target, wchar_t character, size_t count) {
  for (size_t at = 0; at < count; at++) target[at] = character;
  return target;
}

INLINE wchar_t *fill_wide(wchar_t *target, wchar_t character, size_t count, size_t room) {
  check_room(count, room);
  check_write("wmemset", target, bytes_of(count, sizeof(wchar_t)));
  return REAL_OR(wmemset, loop_wmemset)(target, character, count);
}
WITH_ROOM(wchar_t *, wmemset, __wmemset_chk, fill_wide(target, character, count, room),
          wchar_t *target, wchar_t character, size_t count)

/* In glibc 2.43 the name is a macro, too. */
EXPORT void *(memchr)(const void *begin, int byte, size_t bytes) {
  return (void *)(uintptr_t)find_byte("memchr", begin, byte, bytes);
}

static int loop_memcmp(const void *one, const void *other, size_t bytes) {
  const unsigned char *left = one, *right = other;
  for (size_t at = 0; at < bytes; at++)
    if (left[at] != right[at]) return left[at] - right[at];
  return 0;
}

/* Many programs compare more bytes than a block has, because the first ones differ: not
 * reported. */
INLINE int compare(const char *function, const void *one, const void *other, size_t bytes) {
  size_t left = bytes_left(one), left_of_other = bytes_left(other);
  const void *shorter = left < left_of_other ? one : other;
  if (left > left_of_other) left = left_of_other;
  if (LIKELY(bytes <= left)) return REAL_OR(memcmp, loop_memcmp)(one, other, bytes);
  int order = REAL_OR(memcmp, loop_memcmp)(one, other, left);
  if (order) return order;
  check_failed(function, shorter, bytes, false, CALLER_ADDRESS());
  return REAL_OR(memcmp, loop_memcmp)(one, other, bytes);
}

EXPORT int memcmp(const void *one, const void *other, size_t bytes) {
  return compare("memcmp", one, other, bytes);
}
EXPORT int bcmp(const void *one, const void *other, size_t bytes) {
  return compare("bcmp", one, other, bytes);
}
