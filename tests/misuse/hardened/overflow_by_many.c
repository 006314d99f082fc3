/* A whole block is overwritten, and its trailer. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  char *bytes = hide(malloc(100));
  memset(bytes, 7, 112);
  free(bytes);
  return 0;
}
