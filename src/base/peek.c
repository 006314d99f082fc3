#include "base/peek.h"

/* Volatile: each word is read once, by one load.  The race is meant; the sanitizer cannot know. */
MEANT_RACE void peek(void *target, const void *source, size_t bytes) {
  const volatile uintptr_t *from = source;
  uintptr_t *to = target;
  ASSERT(bytes % sizeof *to == 0);
  for (size_t word = 0; word < bytes / sizeof *to; word++) to[word] = from[word];
}
