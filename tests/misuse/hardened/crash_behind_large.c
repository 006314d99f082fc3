/* A Large block ends at an inaccessible page. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  volatile char *bytes = hide(malloc(100000));
  bytes[100000 + 64] = 1;
  return 0;
}
