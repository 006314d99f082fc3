/* A block of 64 bytes, freed as one of 1,000. */
#include <stdlib.h>

#include "misuse/hide.h"

void free_sized(void *block, size_t size); /* C23 */

int main(void) {
  free_sized(hide(malloc(64)), 1000);
  return 0;
}
