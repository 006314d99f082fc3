/* The second free, with nothing in between. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  void *block = malloc(64);
  free(hide(block));
  free(hide(block));
  return 0;
}
