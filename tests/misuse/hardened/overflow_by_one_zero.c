/* A string's end, one byte behind its block. */
#include <stdlib.h>
#include <string.h>

#include "misuse/hide.h"

int main(void) {
  char *text = hide(malloc(40));
  text[40] = 0;
  free(text);
  return 0;
}
