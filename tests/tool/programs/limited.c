/* Takes 1 MiB blocks until it gets no more, but for the argument's number of them at most; then
 * waits for its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1 << 20 };

int main(int count, char **words) {
  int most = count > 1 ? atoi(words[1]) : 1000;
  for (int taken = 0; taken < most; taken++) {
    void *block = malloc(BLOCK_BYTES);
    if (!block) break;
    memset(block, 1, BLOCK_BYTES);
  }
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
