/* malloc_stats says what glibc's does, on standard error; test_manners.py reads it. */
#include "api/check.h"

int main(void) {
  void *small = malloc(1000), *first = malloc(5 << 20), *second = malloc(3 << 20);
  CHECK(small != NULL && first != NULL && second != NULL);
  free(second);
  malloc_stats();
  free(first);
  free(small);
  return 0;
}
