/* forward.h: the end of a function that calls the C library's own. */
#ifndef HAK_FORTIFY_FORWARD_H
#define HAK_FORTIFY_FORWARD_H

#include <errno.h>

#include "fortify/check.h"
#include "fortify/real.h"

#define FORWARD(failure, name, ...)    \
  __typeof__(name) *real = REAL(name); \
  if (UNLIKELY(!real)) {               \
    errno = ENOSYS;                    \
    return failure;                    \
  }                                    \
  return real(__VA_ARGS__)

/* Declared here only: the headers have them for programs that are compiled with _FORTIFY_SOURCE. */
#define CHECKED(result, name, ...) \
  result name(__VA_ARGS__);        \
  EXPORT result name(__VA_ARGS__)

#endif
