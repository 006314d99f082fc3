/* An address where nothing is mapped any more. */
#include <stdlib.h>
#include <sys/mman.h>

#include "misuse/hide.h"

int main(void) {
  void *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(mapped, 1 << 20);
  free(hide((char *)mapped + 64));
  return 0;
}
