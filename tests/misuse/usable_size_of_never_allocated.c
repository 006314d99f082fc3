/* malloc_usable_size of an address far from every block, but where the allocator's memory could be. */
#include <malloc.h>
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(64);
  return malloc_usable_size(hide(block + (1l << 31))) == 0;
}
