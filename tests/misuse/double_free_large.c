/* A block of 100000 bytes, freed twice in a row. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(100000);
  free(hide(block));
  free(hide(block));
  return 0;
}
