/* A block that went with all others of its heap, freed once more. */
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"

int main(void) {
  hak_heap *heap = hak_heap_new("mine");
  void *block = hak_heap_malloc(heap, 100);
  hak_heap_free_all(heap);
  free(hide(block));
  return 0;
}
