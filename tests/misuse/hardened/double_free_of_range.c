/* The same of a block above 32 KiB. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(100000);
  free(hide(block));
  free(hide(block));
  return 0;
}
