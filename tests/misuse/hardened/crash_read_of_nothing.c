/* malloc(0) gives an address that nobody may read. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  const volatile char *nothing = hide(malloc(0));
  return nothing[0];
}
