/* A pointer into a block of 30000 bytes, at a page. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(30000);
  free(hide(block + 4096));
  return 0;
}
