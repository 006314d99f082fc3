/* Its pages are gone once it is free. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  volatile char *bytes = hide(malloc(100000));
  free((void *)bytes);
  bytes[5000] = 1;
  return 0;
}
