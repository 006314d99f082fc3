/* realloc of a block of 3000000 bytes that was freed. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(3000000), *old = hide(block);
  free(block);
  free(realloc(old, 10000000));
  return 0;
}
