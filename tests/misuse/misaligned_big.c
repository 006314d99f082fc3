/* A pointer into a block of 3000000 bytes. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(3000000);
  free(hide(block + 16));
  return 0;
}
