/* Two sites that leak blocks of 1 MiB, as many of each as standard input says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20 };

static void *last;

__attribute__((noipa)) static void chain(void *block) {
  memcpy(block, &last, sizeof last);  // all stay reachable
  last = block;
}

__attribute__((noipa)) static void grow(void) {
  chain(malloc(BLOCK_BYTES));  // line of grow
}

__attribute__((noipa)) static void keep(void) {
  chain(malloc(BLOCK_BYTES));  // line of keep
}

int main(void) {
  int growing, keeping;
  while (scanf("%d %d", &growing, &keeping) == 2) {
    while (growing-- > 0) grow();
    while (keeping-- > 0) keep();
    puts("leaked");
    fflush(stdout);
  }
  return 0;
}
