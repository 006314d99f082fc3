/* sparse: terabytes of addresses, in which one page has a pointer; and lost blocks.  Never dump
 * it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define RESERVED_BYTES ((size_t)8 << 40)
enum { LOST = 40 };

void *volatile sink;

int main(void) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char *reserved = mmap(NULL, RESERVED_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (reserved == MAP_FAILED) return 77; /* strict overcommit */
  madvise(reserved, RESERVED_BYTES, MADV_DONTDUMP);
  *(void *volatile *)(reserved + RESERVED_BYTES / 2) = malloc(1000);
  for (int i = 0; i < LOST; i++) sink = malloc(300);
  sink = NULL;
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
