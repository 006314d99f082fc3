/* Behind a Large block there is room up to the next multiple of 16. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  char *bytes = hide(malloc(100001));
  bytes[100001] = 1;
  free(bytes);
  return 0;
}
