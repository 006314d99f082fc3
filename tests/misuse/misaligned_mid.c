/* A pointer into a block of 5000 bytes. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(5000);
  free(hide(block + 512));
  return 0;
}
