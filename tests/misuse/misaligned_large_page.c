/* A pointer into a block of 500000 bytes, at a page. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(500000);
  free(hide(block + 262144));
  return 0;
}
