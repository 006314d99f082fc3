/* mallctl.h: jemalloc's questions by name, for the programs of this folder. */
#ifndef TESTS_JEMALLOC_MALLCTL_H
#define TESTS_JEMALLOC_MALLCTL_H

#include <stdbool.h>

#include "api/check.h"
#include "api/jemalloc_calls.h"

int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);
int mallctlnametomib(const char *name, size_t *mib, size_t *length);
int mallctlbymib(const size_t *mib, size_t length, void *old, size_t *old_bytes, void *new,
                 size_t new_bytes);
void malloc_stats_print(void (*write)(void *, const char *), void *argument, const char *without);

enum { ALL_ARENAS = 4096, COMPONENTS = 8 };

#define ACT(name) CHECK_MSG(mallctl(name, NULL, NULL, NULL, 0) == 0, "%s", name)
#define SET(name, type, value) \
  CHECK_MSG(mallctl(name, NULL, NULL, &(type){value}, sizeof(type)) == 0, "%s", name)
#define GET(name, type)                                                                        \
  __extension__({                                                                              \
    type it_;                                                                                  \
    size_t bytes_ = sizeof it_;                                                                \
    CHECK_MSG(mallctl(name, &it_, &bytes_, NULL, 0) == 0 && bytes_ == sizeof it_, "%s", name); \
    it_;                                                                                       \
  })

static inline void advance_epoch(void) { SET("epoch", uint64_t, 1); }

/* A name with one number, or two. */
static inline size_t number_of(const char *format, size_t i, size_t j) {
  char name[128];
  snprintf(name, sizeof name, format, i, j);
  return GET(name, size_t);
}

#endif
