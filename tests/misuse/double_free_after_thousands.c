/* The first free has long gone through the caches when the second comes. */
#include <stdlib.h>

#include "misuse/hide.h"

enum { OTHERS = 20000 };

static void *others[OTHERS];

int main(void) {
  void *block = malloc(64);
  for (int i = 0; i < OTHERS; i++) {
    others[i] = malloc(64);
  }
  free(hide(block));
  for (int i = 0; i < OTHERS; i++) {
    free(others[i]);
  }
  free(hide(block));
  return 0;
}
