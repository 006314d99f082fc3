/* A page before it there is another one. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  volatile char *bytes = hide(malloc(100000));
  for (size_t before = 1; before < 70000; before++) bytes[-(ptrdiff_t)before] = 1;
  return 0;
}
