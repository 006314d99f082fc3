/* A pointer into a block of 100 bytes, at an odd address. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(100);
  free(hide(block + 1));
  return 0;
}
