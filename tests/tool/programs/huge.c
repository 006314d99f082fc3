/* A block of 200 GiB, which three pages of are used; the only pointer to a small block lies in its
 * middle.  Prints what `known` wants to know: the block, the address in its middle, the small
 * block, one that is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t bytes = (size_t)200 << 30;
static char *volatile block;

static __attribute__((noinline)) void make(void) {
  char *inner = malloc(3000), *lost = malloc(5000);
  block = malloc(bytes);
  memset(inner, 5, 3000);
  memset(lost, 5, 5000);
  memcpy(block + bytes / 2, &inner, sizeof inner);
  block[0] = block[bytes - 1] = 1;
  printf("%#zx %#zx %#zx %#zx\nready\n", (size_t)block, (size_t)block + bytes / 2, (size_t)inner,
         (size_t)lost);
}

static __attribute__((noinline)) void overwrite_the_stack(void) {
  char volatile rest[16384];
  memset((char *)rest, 0, sizeof rest);
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  make();
  overwrite_the_stack();
  pause();
  return block == NULL;
}
