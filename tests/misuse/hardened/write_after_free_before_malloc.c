/* A freed block is written to, and found out by the next call, whatever that is for. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(int count, char **arguments) {
  if (count != 2) return 2;
  size_t size = strtoul(arguments[1], NULL, 10);
  char *block = hide(malloc(size));
  free(block);
  memset(block, 'A', size);
  free(hide(malloc(300)));
  return 0;
}
