/* Two sites: one keeps what it allocates, the other frees it.  Prints "ready", goes on until it is
 * ended; with an argument it ends by itself after so many milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  KEPT_BYTES = 64,
  PASSING_BYTES = 200,
  KEPT_MAX = 4 << 20,
  CALLS = 1000,
  PASSING_PER_KEPT = 4
};

static void *kept[KEPT_MAX];
static void *volatile sink;

__attribute__((noinline)) void *keeps(void) {
  void *block = malloc(KEPT_BYTES);
  memset(block, 1, KEPT_BYTES);
  return block;
}

__attribute__((noinline)) void passes(void) {
  sink = malloc(PASSING_BYTES);
  free(sink);
}

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int count, char **arguments) {
  long end_ms = count > 1 ? now_ms() + atol(arguments[1]) : 0;
  unsigned kept_count = 0;
  puts("ready");
  fflush(stdout);
  while (!end_ms || now_ms() < end_ms) {
    for (int call = 0; call < CALLS; call++) {
      passes();
      if (call % PASSING_PER_KEPT == 0 && kept_count < KEPT_MAX) kept[kept_count++] = keeps();
    }
    usleep(1000);
  }
  return 0;
}
