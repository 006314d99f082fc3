/* realloc has moved the block; the program frees the old address. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(100), *old = hide(block);
  block = realloc(block, 50000);
  free(old);
  free(block);
  return 0;
}
