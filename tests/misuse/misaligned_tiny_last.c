/* A pointer into a block of 1000 bytes, its last byte. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(1000);
  free(hide(block + 999));
  return 0;
}
