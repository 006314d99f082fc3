/* A pointer 16 bytes into a block of 64 in a heap that the program has made. */
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"

int main(void) {
  char *block = hak_heap_malloc(hak_heap_new("mine"), 64);
  free(hide(block + 16));
  return 0;
}
