/* realloc(p, 0) has freed the block already. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(100), *old = hide(block);
  block = realloc(block, 0);
  free(old);
  return block != NULL;
}
