/* malloc_stats writes to standard error only; test_reports.py looks at what it wrote. */
#include "api/check.h"

int main(void) {
  void *block = MUST(malloc(1000));
  malloc_stats();
  free(block);
  return 0;
}
