/* limit.h: a program that sets a resource limit for itself before the allocator starts.
 *
 * The allocator looks at the limits once, when it starts, so the limit is set and the program then
 * executed again under it. */
#ifndef TESTS_FAILURE_LIMIT_H
#define TESTS_FAILURE_LIMIT_H

#include <sys/resource.h>

#include "api/check.h"

static inline void limit_and_restart(char **argv, int resource, size_t bytes) {
  struct rlimit limit = {bytes, bytes};
  if (getenv("TEST_IS_LIMITED") == NULL) {
    CHECK(setenv("TEST_IS_LIMITED", "1", 1) == 0);
    CHECK(setrlimit(resource, &limit) == 0);
    execv("/proc/self/exe", argv);
    CHECK(!"execv returned");
  }
}

#endif
