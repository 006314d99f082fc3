/* linked NAME: does one thing wrong with memory, and ends; with functions that programs have from
 * hakmem alone. */
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"
#include "ways.h"

void free_sized(void *block, size_t size); /* C23 */

/* A block in a heap that the program has made. */
static void *in_heap(size_t size) { return hak_heap_malloc(hak_heap_new("mine"), size); }

WAY(double_free_in_heap) {
  hak_heap *heap = hak_heap_new("mine");
  void *block = hak_heap_malloc(heap, 100);
  for (int i = 0; i < 1000; i++) hide(hak_heap_malloc(heap, 100));
  free(hide(block));
  free(hide(hak_heap_malloc(heap, 5000)));
  free(hide(block));
}

WAY(double_free_of_range_in_heap) {
  void *block = in_heap(300000);
  free(hide(block));
  free(hide(block));
}

/* A block that went with all others of its heap. */
WAY(double_free_after_free_all) {
  hak_heap *heap = hak_heap_new("mine");
  void *block = hak_heap_malloc(heap, 100);
  hak_heap_free_all(heap);
  free(hide(block));
}

WAY(misaligned_in_heap) { free(hide((char *)in_heap(64) + 16)); }
WAY(realloc_misaligned_in_heap) { hide(realloc(hide((char *)in_heap(200000) + 64), 300000)); }
WAY(free_sized_of_tiny) { free_sized(hide(malloc(64)), 1000); }
WAY(free_sized_of_large) { free_sized(hide(malloc(100000)), 10); }

int main(int count, char **arguments) { return count == 2 && run_way(arguments[1]) ? 0 : 2; }
