/* memory.h: the C library's own memory functions, without a check.
 *
 * loop_*: the same byte by byte, for the time before those can be found. */
#ifndef HAK_FORTIFY_MEMORY_H
#define HAK_FORTIFY_MEMORY_H

#include <string.h>

#include "fortify/real.h"

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

/* memcpy, too: programs older than glibc 2.14 rely on it where the two overlap. */
INLINE void *real_move(void *target, const void *source, size_t bytes) {
  return REAL_OR(memmove, loop_memmove)(target, source, bytes);
}
INLINE void *real_set(void *target, int byte, size_t bytes) {
  return REAL_OR(memset, loop_memset)(target, byte, bytes);
}

#endif
