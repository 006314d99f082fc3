/* stray_write SIZE OFFSET: one byte, so far from the begin of a block of that size, changes; then the block is freed. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(int count, char **arguments) {
  if (count != 3) return 2;
  char *block = hide(malloc(strtoul(arguments[1], NULL, 10)));
  ((volatile char *)block)[strtol(arguments[2], NULL, 10)] ^= 'A';
  free(block);
  return 0;
}
