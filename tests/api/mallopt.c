/* mallopt: an answer of 0 or 1 to every parameter glibc knows, and no harm done by any. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/sizes.h"

int main(void) {
  static const int parameters[] = {M_MXFAST,   M_TRIM_THRESHOLD, M_TOP_PAD,    M_MMAP_THRESHOLD,
                                   M_MMAP_MAX, M_CHECK_ACTION,   M_ARENA_TEST, M_ARENA_MAX};
  static const int values[] = {0, 1, 64, 65536};
  for (size_t i = 0; i < COUNT_OF(parameters); i++) {
    for (size_t j = 0; j < COUNT_OF(values); j++) {
      int answer = mallopt(parameters[i], values[j]);
      CHECK_MSG(answer == 0 || answer == 1, "mallopt(%d): %d", parameters[i], answer);
    }
  }
  for (size_t i = 0; i < TIER_SIZES; i++) {
    void *block = malloc(tier_sizes[i]);
    CHECK(block != NULL);
    memset(block, 1, tier_sizes[i]);
    free(block);
  }
  return 0;
}
