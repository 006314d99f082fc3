/* realloc of a pointer into a block of 5000 bytes. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(5000);
  void *moved = realloc(hide(block + 1024), 10000000);
  free(moved);
  return 0;
}
