/* A block of 0 bytes, freed twice in a row. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(0);
  free(hide(block));
  free(hide(block));
  return 0;
}
