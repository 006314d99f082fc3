/* Linked to another program of this folder: it begins with classes that fit some sizes
 * (docs/decisions/0049). */
#include <malloc.h>
#include <stdlib.h>

__attribute__((constructor)) static void make(void) {
  enum { BYTES = 1 << 20 };
  static const size_t sizes[] = {140, 264, 1030, 4368};
  static void *blocks[BYTES / 140];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t count = BYTES / sizes[i];
    for (size_t block = 0; block < count; block++) blocks[block] = malloc(sizes[i]);
    size_t fits = (sizes[i] + 15) / 16 * 16;
    if (malloc_usable_size(blocks[0]) == fits || malloc_usable_size(blocks[count - 1]) != fits)
      abort();
    for (size_t block = 0; block < count; block++) free(blocks[block]);
  }
}
