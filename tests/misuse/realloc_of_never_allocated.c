/* realloc of an address far from every block, but where the allocator's memory could be. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char *block = malloc(64);
  return realloc(hide(block + (1l << 31)), 100) == NULL;
}
