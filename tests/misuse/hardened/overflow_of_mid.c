/* One byte behind a Mid block. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  char *bytes = hide(malloc(5000));
  bytes[5000] = 1;
  free(bytes);
  return 0;
}
