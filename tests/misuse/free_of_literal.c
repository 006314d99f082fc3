/* The address of a string literal. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  free(hide("a string literal"));
  return 0;
}
