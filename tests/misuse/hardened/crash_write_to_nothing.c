/* malloc(0) gives an address that nobody may write to. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  volatile char *nothing = hide(malloc(0));
  nothing[0] = 1;
  return 0;
}
