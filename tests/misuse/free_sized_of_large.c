/* A block of 100,000 bytes, freed as one of 10. */
#include <stdlib.h>

#include "misuse/hide.h"

void free_sized(void *block, size_t size); /* C23 */

int main(void) {
  free_sized(hide(malloc(100000)), 10);
  return 0;
}
