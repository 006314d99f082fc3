/* stray_write SIZE OFFSET [HEAP]: one byte, so far from the begin of a block of that size, changes;
 * then the block is freed. */
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"

int main(int count, char **arguments) {
  if (count != 3 && count != 4) return 2;
  size_t size = strtoul(arguments[1], NULL, 10);
  char *block = hide(count == 4 ? hak_heap_malloc(hak_heap_new(arguments[3]), size) : malloc(size));
  ((volatile char *)block)[strtol(arguments[2], NULL, 10)] ^= 'A';
  free(block);
  return 0;
}
