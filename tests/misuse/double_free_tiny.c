/* A block of 64 bytes, freed twice in a row. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(64);
  free(hide(block));
  free(hide(block));
  return 0;
}
