/* Refills and flushes, the same in each run: a set of blocks grows and goes, in order or in no
 * order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MAX = 20000, LARGE_BLOCKS = 1000, LARGE_BYTES = 1024, ROUNDS = 6 };

static void *blocks[BLOCKS_MAX];

static unsigned draw(unsigned below) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((state >> 33) % below);
}

static void shuffle(unsigned count) {
  for (unsigned last = count - 1; last; last--) {
    unsigned other = draw(last + 1);
    void *block = blocks[last];
    blocks[last] = blocks[other];
    blocks[other] = block;
  }
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  size_t size = strtoul(arguments[1], NULL, 10);
  unsigned block_count = size > LARGE_BYTES ? LARGE_BLOCKS : BLOCKS_MAX;
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned index = 0; index < block_count; index++) blocks[index] = malloc(size);
    if (strcmp(arguments[2], "shuffled") == 0) shuffle(block_count);
    for (unsigned index = 0; index < block_count; index++) free(blocks[index]);
  }
  return 0;
}
