/* Frees 100 MB of small blocks, keeps so much live that a program with one thread waits with giving
 * them back, and goes on with a few calls, most of which hit a magazine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 400000, BLOCK_BYTES = 500, ROUND_US = 10000 };

static char *blocks[BLOCKS];
static void *volatile sink;

int main(void) {
  for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
  for (int i = BLOCKS / 2; i < BLOCKS; i++) free(blocks[i]);
  puts("ready");
  fflush(stdout);
  for (;;) {
    sink = malloc(BLOCK_BYTES);
    free(sink);
    usleep(ROUND_US);
  }
}
