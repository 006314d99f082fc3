/* malloc_usable_size of a local variable. */
#include <malloc.h>
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char local[64] = {0};
  return malloc_usable_size(hide(local)) == 0;
}
