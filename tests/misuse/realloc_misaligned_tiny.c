/* realloc of a pointer into a block of 64 bytes. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(64);
  void *moved = realloc(hide(block + 16), 10000000);
  free(moved);
  return 0;
}
