/* check.h: the one assertion of the black-box test programs, and the headers of the C library that
 * most of them need.
 *
 * A failed check prints where and what, and ends the program at once with status 1.  It goes around
 * atexit handlers and allocates nothing: the allocator is what is being doubted. */
#ifndef TESTS_API_CHECK_H
#define TESTS_API_CHECK_H

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      dprintf(STDERR_FILENO, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                                            \
    }                                                                                      \
  } while (0)

/* As CHECK, with the numbers that explain the failure. */
#define CHECK_MSG(condition, ...)                                                          \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      dprintf(STDERR_FILENO, "%s:%d: check failed: %s: ", __FILE__, __LINE__, #condition); \
      dprintf(STDERR_FILENO, __VA_ARGS__);                                                 \
      dprintf(STDERR_FILENO, "\n");                                                        \
      _exit(1);                                                                            \
    }                                                                                      \
  } while (0)

/* A call that returns NULL or false, and says why. */
enum { CHECK_ERRNO_MARK = 4711 };
#define CHECK_FAILS(call, error)                                   \
  do {                                                             \
    errno = CHECK_ERRNO_MARK;                                      \
    CHECK(!(call));                                                \
    CHECK_MSG(errno == (error), #call " failed: errno %d", errno); \
  } while (0)

/* What the call returns: not NULL. */
#define MUST(call)            \
  __extension__({             \
    __auto_type it_ = (call); \
    CHECK(it_ != NULL);       \
    it_;                      \
  })

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
