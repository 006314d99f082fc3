/* two [on]: allocates 1000 blocks of 1,000 bytes, says so and waits unless told to go on, frees one
 * that the C library has allocated, and ends.  BOTH: that has allocated one before, too. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "steps.h"

enum { BLOCKS = 1000, BYTES = 1000 };

static void *blocks[BLOCKS];

int main(int argc, char **argv) {
  (void)argv;
  for (int i = 0; i < BLOCKS; i++)
    if (!(blocks[i] = malloc(BYTES))) return 1;
#ifdef BOTH
  if (!strdup("kept")) return 1;
#endif
  if (argc == 1) step("allocated");
  free(strdup("a block of whichever malloc the C library finds"));
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  return 0;
}
