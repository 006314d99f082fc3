/* memory.h: the C library's own ways over memory, without a check. */
#ifndef HAK_FORTIFY_MEMORY_H
#define HAK_FORTIFY_MEMORY_H

#include <string.h>

#include "fortify/loops.h"
#include "fortify/real.h"

/* memcpy, too: programs older than glibc 2.14 rely on it where the two overlap. */
INLINE void *real_move(void *target, const void *source, size_t bytes) {
  return REAL_OR(memmove, loop_memmove)(target, source, bytes);
}
INLINE void *real_set(void *target, int byte, size_t bytes) {
  return REAL_OR(memset, loop_memset)(target, byte, bytes);
}
INLINE void *real_find_byte(const void *begin, int byte, size_t bytes) {
  return REAL_OR(memchr, loop_memchr)(begin, byte, bytes);
}

#endif
