/* Keeps a part of its memory, frees slabs, Large and Big blocks, and goes on with small
 * requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT = 96, IN_SLABS = 512, LARGE = 16, BIG = 2, BATCH = 300 };
static char *kept[KEPT], *in_slabs[IN_SLABS], *large[LARGE], *big[BIG];

static void fill(char **blocks, int count, size_t bytes) {
  for (int index = 0; index < count; index++) memset(blocks[index] = malloc(bytes), 1, bytes);
}

static void empty(char **blocks, int count) {
  for (int index = 0; index < count; index++) free(blocks[index]);
}

int main(void) {
  fill(kept, KEPT, 1 << 20);
  fill(in_slabs, IN_SLABS, 40 << 10);
  fill(large, LARGE, 600 << 10);
  fill(big, BIG, 24 << 20);
  empty(in_slabs, IN_SLABS);
  empty(large, LARGE);
  empty(big, BIG);
  puts("ready");
  fflush(stdout);
  for (size_t bytes = 1;; bytes = bytes % 3000 + 97) {
    char *batch[BATCH];
    fill(batch, BATCH, bytes);
    empty(batch, BATCH);
    usleep(2000);
  }
}
