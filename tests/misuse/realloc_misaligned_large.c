/* realloc of a pointer into a block of 100000 bytes. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(100000);
  void *moved = realloc(hide(block + 4096), 10000000);
  free(moved);
  return 0;
}
