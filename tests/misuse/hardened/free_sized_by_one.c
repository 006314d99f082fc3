/* A size that is wrong by one. */
#include <stdlib.h>
#include <string.h>

void free_sized(void *block, size_t size); /* C23 */

#include "misuse/hide.h"

int main(void) {
  free_sized(hide(malloc(100)), 99);
  return 0;
}
