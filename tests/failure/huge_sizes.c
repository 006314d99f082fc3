/* Sizes beyond any machine, with no limit set: a block or NULL with ENOMEM, and no harm either
 * way. */
#include "failure/chain.h"

int main(void) {
  char *witness = MUST(malloc(1000));
  stamp_write(witness, 1000, 1);
  for (int shift = 32; shift < 63; shift++) {
    size_t size = (size_t)1 << shift;
    void *blocks[] = {malloc(size), malloc(size - 1), memalign(1 << 21, size), NULL};
    if (shift > 46) { /* below, a calloc that zeroes by hand would take all of the machine */
      blocks[3] = calloc(size, 1);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
      CHECK(blocks[i] == NULL || malloc_usable_size(blocks[i]) >= size - 1);
      CHECK_MSG(blocks[i] == NULL || shift < 48, "2^%d bytes cannot exist", shift);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) free(blocks[i]);
    errno = 0;
    char *grown = realloc(witness, size);
    CHECK(grown != NULL || errno == ENOMEM);
    witness = grown != NULL ? realloc(grown, 1000) : witness;
    CHECK(stamp_holds(witness, 1000, 1));
  }
  free(witness);
  return 0;
}
