/* object_size_of_freed SIZE: the size of a block that is free is asked for, first in haste. */
#include <stdio.h>
#include <stdlib.h>

#include "misuse/hide.h"

size_t malloc_object_size(const void *pointer);
size_t malloc_object_size_fast(const void *pointer);

int main(int count, char **arguments) {
  size_t size = count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
  char *block = hide(malloc(size));
  free(block);
  printf("%zu\n", malloc_object_size_fast(hide(block + size / 2)));
  fflush(stdout);
  printf("%zu\n", malloc_object_size(hide(block + size / 2)));
  return 0;
}
