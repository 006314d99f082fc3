/* Maps memory right after its own data, as the kernel may place an arena after those of a library. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, BYTES = 64 << 20 };
extern char end;

int main(void) {
  void *after = (void *)(((uintptr_t)&end + PAGE_BYTES - 1) & -(uintptr_t)PAGE_BYTES);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  if (mmap(after, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) != after) return 1;
  memset(after, 1, BYTES);
  puts("ready");
  fflush(stdout);
  pause();
}
