/* A block grows by steps of 1 MiB and shrinks again: its peak is not much more than its size, and
 * what was cut off has gone when the program calls nothing any more. */
#include <sys/resource.h>

#include "memory/pages.h"
#include "memory/rss.h"

enum { STEPS = 192, LEFT_MIB = 40 };

int main(void) {
  struct rusage usage;
  char *block = NULL;
  for (size_t step = 1; step <= STEPS; step++) {
    block = MUST(realloc(block, step * MIB));
    memset(block + (step - 1) * MIB, (int)step, MIB);
  }
  for (size_t step = 1; step <= STEPS; step++) CHECK(block[(step - 1) * MIB] == (char)step);
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  size_t peak_mib = (size_t)usage.ru_maxrss / 1024;
  CHECK_MSG(peak_mib < STEPS + STEPS / 16 + 8, "%zu MiB", peak_mib);
  for (size_t step = STEPS - 1; step; step--) {
    block = MUST(realloc(block, step * MIB));
    CHECK(block[step * MIB - 1] == (char)step);
  }
  size_t left_mib = rss_bytes() / MIB;
  CHECK_MSG(left_mib < LEFT_MIB, "%zu MiB left", left_mib);
  free(block);
  return 0;
}
