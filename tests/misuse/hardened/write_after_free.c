/* A freed block is written to, and found out when it is used again. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  char *bytes = hide(malloc(64));
  free(bytes);
  bytes[20] = 1;
  for (int i = 0; i < 100000; i++) free(hide(malloc(64)));
  return 0;
}
