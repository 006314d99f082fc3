/* What malloc(0) gave is freed once. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  void *nothing = hide(malloc(0));
  free(nothing);
  free(hide(nothing));
  return 0;
}
