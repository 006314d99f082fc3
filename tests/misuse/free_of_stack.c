/* The address of a local variable. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char local[64] = {0};
  free(hide(local));
  return 0;
}
