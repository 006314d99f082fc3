/* Prints the return addresses of a stack, innermost first, as a sampler would keep them, and
 * waits. */
#include <execinfo.h>
#include <stdio.h>

enum { DEPTH = 16 };

__attribute__((noipa)) static void sampled(void) {
  void *addresses[DEPTH];
  int count = backtrace(addresses, DEPTH);
  for (int i = 1; i < count; i++)  // the first is in here
    printf("%p ", addresses[i]);
  printf("\n");
  fflush(stdout);
}

__attribute__((noipa)) static void allocate(void) {
  sampled();  // line of allocate
  __asm__("");
}

__attribute__((noipa)) static void serve(void) {
  allocate();  // line of serve
  __asm__("");
}

int main(void) {
  serve();  // line of main
  return getchar() == 0;
}
