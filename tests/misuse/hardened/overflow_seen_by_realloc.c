/* What was written behind the block is seen when it grows. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  char *bytes = hide(malloc(100));
  bytes[103] = 1;
  free(realloc(bytes, 200));
  return 0;
}
