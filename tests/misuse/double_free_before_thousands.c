/* Thousands of frees follow: found when the magazine overflows, long before the process ends. */
#include <stdlib.h>
#include <unistd.h>

#include "misuse/hide.h"

enum { OTHERS = 20000 };

static void *others[OTHERS];

int main(void) {
  void *block = malloc(64);
  for (int i = 0; i < OTHERS; i++) {
    others[i] = malloc(64);
  }
  free(hide(block));
  free(hide(block));
  for (int i = 0; i < OTHERS; i++) {
    free(others[i]);
  }
  _exit(0);
}
