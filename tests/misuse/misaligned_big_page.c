/* A pointer into a block of 20000000 bytes, pages into it. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(20000000);
  free(hide(block + 16777216));
  return 0;
}
