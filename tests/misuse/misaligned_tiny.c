/* A pointer into a block of 64 bytes. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(64);
  free(hide(block + 16));
  return 0;
}
