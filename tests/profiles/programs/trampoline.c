/* Leaks blocks of 1 MiB through code that was made while the program runs, as CPython's for
 * profilers: it has neither tables nor a frame pointer.  The caller's frame pointer is a number
 * like any other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const unsigned char code[] = {
    0x48, 0x83, 0xec, 0x08,  // sub $8, %rsp
    0xff, 0xd1,              // call *%rcx
    0x48, 0x83, 0xc4, 0x08,  // add $8, %rsp
    0xc3,                    // ret
};

typedef void trampoline(int, int, int, void (*)(int, int, int));

static void *last;
static trampoline *through;

__attribute__((noipa)) static void leak(void) {
  void *block = malloc(1 << 20);
  memcpy(block, &last, sizeof last);  // all stay reachable
  last = block;
  __asm__("");
}

__attribute__((noipa)) static void evaluate(int depth, int b, int c) {
  if (depth)
    through(depth - 1, b, c, evaluate);
  else
    leak();
  __asm__("");
}

int main(void) {
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  memcpy(page, code, sizeof code);
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC)) return 1;
  through = (trampoline *)page;
  for (int i = 0; i < 10; i++) through(3, 0, 0, evaluate);
  puts("leaked");
  fflush(stdout);
  return getchar() == 0;
}
