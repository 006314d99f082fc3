/* realloc of a local variable. */
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  char local[64] = {0};
  return realloc(hide(local), 100) == NULL;
}
