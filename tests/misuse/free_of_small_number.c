/* An address in the first page: a null pointer with a field's offset. */
#include <stdint.h>
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  free(hide((void *)(uintptr_t)24));
  return 0;
}
