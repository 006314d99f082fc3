/* A block of 300,000 bytes in a heap that the program has made, freed twice. */
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"

int main(void) {
  hak_heap *heap = hak_heap_new("mine");
  void *block = hak_heap_malloc(heap, 300000);
  free(hide(block));
  free(hide(block));
  return 0;
}
