/* The address of code. */
#include <stdint.h>
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  free(hide((void *)(uintptr_t)main));
  return 0;
}
