/* A pointer into a block of 100000 bytes. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(100000);
  free(hide(block + 64));
  return 0;
}
