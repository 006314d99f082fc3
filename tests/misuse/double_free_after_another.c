/* Another block is freed between the two: free(a), free(b), free(a). */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *a = malloc(64), *b = malloc(64);
  free(hide(a));
  free(hide(b));
  free(hide(a));
  return 0;
}
