/* A pointer eight bytes into what aligned_alloc returned. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = aligned_alloc(256, 1024);
  free(hide(block + 8));
  return 0;
}
