/* realloc of a pointer into a block of 3000000 bytes. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(3000000);
  void *moved = realloc(hide(block + 65536), 10000000);
  free(moved);
  return 0;
}
