/* The address of a global variable. */
#include <stdlib.h>

#include "misuse/hide.h"

static char global[64];

int main(void) {
  free(hide(global));
  return 0;
}
