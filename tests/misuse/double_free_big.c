/* A block of 3000000 bytes, freed twice in a row. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(3000000);
  free(hide(block));
  free(hide(block));
  return 0;
}
