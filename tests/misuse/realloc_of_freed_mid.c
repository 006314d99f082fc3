/* realloc of a block of 5000 bytes that was freed. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(5000), *old = hide(block);
  free(block);
  free(realloc(old, 10000000));
  return 0;
}
