/* memory.c: mem*, wmem*, b*. */
#include "fortify/memory.h"

#include <strings.h>
#include <wchar.h>

#include "fortify/check.h"

/* Declared here only. */
#define CHECKED(result, name, ...) \
  result name(__VA_ARGS__);        \
  EXPORT result name(__VA_ARGS__)

/* ---- copies ------------------------------------------------------------------------------------------ */

INLINE void *copy(const char *function, void *target, const void *source, size_t bytes) {
  check_write(function, target, bytes);
  check_read(function, source, bytes);
  return real_move(target, source, bytes);
}

EXPORT void *memcpy(void *restrict target, const void *restrict source, size_t bytes) {
  return copy("memcpy", target, source, bytes);
}
EXPORT void *memmove(void *target, const void *source, size_t bytes) {
  return copy("memmove", target, source, bytes);
}
EXPORT void *mempcpy(void *restrict target, const void *restrict source, size_t bytes) {
  return (char *)copy("mempcpy", target, source, bytes) + bytes;
}
void *__mempcpy(void *restrict, const void *restrict, size_t) EXPORT_ALIAS_OF(mempcpy);
EXPORT void bcopy(const void *source, void *target, size_t bytes) {
  copy("bcopy", target, source, bytes);
}

CHECKED(void *, __memcpy_chk, void *target, const void *source, size_t bytes, size_t room) {
  check_room(bytes, room);
  return copy("memcpy", target, source, bytes);
}
CHECKED(void *, __memmove_chk, void *target, const void *source, size_t bytes, size_t room) {
  check_room(bytes, room);
  return copy("memmove", target, source, bytes);
}
CHECKED(void *, __mempcpy_chk, void *target, const void *source, size_t bytes, size_t room) {
  check_room(bytes, room);
  return (char *)copy("mempcpy", target, source, bytes) + bytes;
}

INLINE wchar_t *copy_wide(const char *function, wchar_t *target, const wchar_t *source,
                          size_t count) {
  return copy(function, target, source, bytes_of(count, sizeof(wchar_t)));
}

EXPORT wchar_t *wmemcpy(wchar_t *restrict target, const wchar_t *restrict source, size_t count) {
  return copy_wide("wmemcpy", target, source, count);
}
EXPORT wchar_t *wmemmove(wchar_t *target, const wchar_t *source, size_t count) {
  return copy_wide("wmemmove", target, source, count);
}
EXPORT wchar_t *wmempcpy(wchar_t *restrict target, const wchar_t *restrict source, size_t count) {
  return copy_wide("wmempcpy", target, source, count) + count;
}
CHECKED(wchar_t *, __wmemcpy_chk, wchar_t *target, const wchar_t *source, size_t count,
        size_t room) {
  check_room(count, room);
  return copy_wide("wmemcpy", target, source, count);
}
CHECKED(wchar_t *, __wmemmove_chk, wchar_t *target, const wchar_t *source, size_t count,
        size_t room) {
  check_room(count, room);
  return copy_wide("wmemmove", target, source, count);
}
CHECKED(wchar_t *, __wmempcpy_chk, wchar_t *target, const wchar_t *source, size_t count,
        size_t room) {
  check_room(count, room);
  return copy_wide("wmempcpy", target, source, count) + count;
}

/* What is said to be the most that is read, and where that ends before: what is really there of it. */
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

/* ---- fills ------------------------------------------------------------------------------------------- */

INLINE void *fill(const char *function, void *target, int byte, size_t bytes) {
  check_write(function, target, bytes);
  return real_set(target, byte, bytes);
}

EXPORT void *memset(void *target, int byte, size_t bytes) {
  return fill("memset", target, byte, bytes);
}
EXPORT void bzero(void *target, size_t bytes) { fill("bzero", target, 0, bytes); }
CHECKED(void *, __memset_chk, void *target, int byte, size_t bytes, size_t room) {
  check_room(bytes, room);
  return fill("memset", target, byte, bytes);
}

/* Called through a pointer that the compiler does not know: it is not left out. */
EXPORT void explicit_bzero(void *target, size_t bytes) { fill("explicit_bzero", target, 0, bytes); }
CHECKED(void, __explicit_bzero_chk, void *target, size_t bytes, size_t room) {
  check_room(bytes, room);
  fill("explicit_bzero", target, 0, bytes);
}

INLINE wchar_t *fill_wide(wchar_t *target, wchar_t character, size_t count) {
  check_write("wmemset", target, bytes_of(count, sizeof(wchar_t)));
  return REAL_OR(wmemset, loop_wmemset)(target, character, count);
}
EXPORT wchar_t *wmemset(wchar_t *target, wchar_t character, size_t count) {
  return fill_wide(target, character, count);
}
CHECKED(wchar_t *, __wmemset_chk, wchar_t *target, wchar_t character, size_t count, size_t room) {
  check_room(count, room);
  return fill_wide(target, character, count);
}

/* ---- questions ---------------------------------------------------------------------------------------- */

EXPORT void *memchr(const void *begin, int byte, size_t bytes) {
  return (void *)(uintptr_t)find_byte("memchr", begin, byte, bytes);
}

/* Many a program compares more bytes than there are, because the first ones differ: that is left alone. */
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
