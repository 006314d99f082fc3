/* Allocates, and says whom it runs as: "real effective". */
#include "api/check.h"

int main(void) {
  void *block = MUST(malloc(100000));
  free(block);
  dprintf(STDOUT_FILENO, "%u %u\n", getuid(), geteuid());
  return 0;
}
