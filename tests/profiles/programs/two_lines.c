/* One function that asks for memory in two lines: 64 rounds, and as many more as each line of
 * standard input says. */
#include <stdio.h>
#include <stdlib.h>

static void *last;

__attribute__((noipa)) static void chain(void **block) {
  *block = last;  // all stay reachable
  last = block;
}

__attribute__((noipa)) static void fill(void) {
  chain(malloc(100 << 10));  // the small line
  chain(malloc(400 << 10));  // the large line
}

int main(void) {
  int rounds = 64;
  do {
    while (rounds-- > 0) fill();
    puts("filled");
    fflush(stdout);
  } while (scanf("%d", &rounds) == 1);
  return 0;
}
