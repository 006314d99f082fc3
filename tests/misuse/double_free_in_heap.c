/* A block of 100 bytes in a heap that the program has made, freed twice with others in between. */
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"

int main(void) {
  hak_heap *heap = hak_heap_new("mine");
  void *block = hak_heap_malloc(heap, 100);
  for (int i = 0; i < 1000; i++) hide(hak_heap_malloc(heap, 100));
  free(hide(block));
  free(hide(hak_heap_malloc(heap, 5000)));
  free(hide(block));
  return 0;
}
