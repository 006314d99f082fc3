/* A block with an alignment of its own, freed twice. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = aligned_alloc(4096, 100);
  free(hide(block));
  free(hide(block));
  return 0;
}
