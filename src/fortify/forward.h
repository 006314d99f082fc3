/* forward.h: the value of a function that calls the C library's own. */
#ifndef HAK_FORTIFY_FORWARD_H
#define HAK_FORTIFY_FORWARD_H

#include <errno.h>

#include "fortify/check.h"
#include "fortify/real.h"

#define FORWARD(failure, name, ...) \
  (LIKELY(REAL(name) != NULL) ? REAL(name)(__VA_ARGS__) : (errno = ENOSYS, failure))

#endif
