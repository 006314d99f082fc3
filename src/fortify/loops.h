/* loops.h: what the C library does, byte by byte, for the time before its functions can be found. */
#ifndef HAK_FORTIFY_LOOPS_H
#define HAK_FORTIFY_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

static inline void *loop_memmove(void *target, const void *source, size_t bytes) {
  char *to = target;
  const char *from = source;
  if (to < from)
    for (size_t at = 0; at < bytes; at++) to[at] = from[at];
  else
    for (size_t at = bytes; at--;) to[at] = from[at];
  return target;
}

static inline void *loop_memset(void *target, int byte, size_t bytes) {
  for (size_t at = 0; at < bytes; at++) ((unsigned char *)target)[at] = (unsigned char)byte;
  return target;
}

static inline int loop_memcmp(const void *one, const void *other, size_t bytes) {
  const unsigned char *left = one, *right = other;
  for (size_t at = 0; at < bytes; at++)
    if (left[at] != right[at]) return left[at] - right[at];
  return 0;
}

static inline void *loop_memchr(const void *begin, int byte, size_t bytes) {
  const unsigned char *at = begin;
  for (; bytes--; at++)
    if (*at == (unsigned char)byte) return (void *)(uintptr_t)at;
  return NULL;
}

static inline size_t loop_strnlen(const char *text, size_t most) {
  size_t length = 0;
  while (length < most && text[length]) length++;
  return length;
}
static inline size_t loop_strlen(const char *text) { return loop_strnlen(text, SIZE_MAX); }

static inline size_t loop_wcsnlen(const wchar_t *text, size_t most) {
  size_t length = 0;
  while (length < most && text[length]) length++;
  return length;
}
static inline size_t loop_wcslen(const wchar_t *text) { return loop_wcsnlen(text, SIZE_MAX); }

static inline wchar_t *loop_wmemset(wchar_t *target, wchar_t character, size_t count) {
  for (size_t at = 0; at < count; at++) target[at] = character;
  return target;
}

#endif
