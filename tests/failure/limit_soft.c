/* HAKMEM_LIMIT_SOFT is argv[1] MiB, and nothing goes back by age.  A program that passes it and
 * frees is below it again with its next slow paths; one that lives above it (argv[2] is `above`) is
 * served, mostly without a round; one that stayed above it for a while and then uses other sizes
 * (`change`) does not hold both. */
#include <time.h>

#include "api/sizes.h"
#include "failure/chain.h"
#include "memory/rss.h"

static size_t limit_bytes, base_bytes;

static void wait_ms(long milliseconds) {
  struct timespec time = {0, milliseconds * 1000000};
  nanosleep(&time, NULL);
}

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pass_and_free(void) {
  enum { TICK_MS = 10, TICKS = 80 };
  static const size_t sizes[] = {64, 1000, 20000, 200 * KIB, 3 * MIB};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    long began_ms = now_ms();
    chain_swing(sizes[i], limit_bytes * 3);
    size_t held = rss_bytes() - base_bytes;
    /* The interval had doubled while the program was above: it may be as long as that time. */
    long ticks = TICKS + 2 * (now_ms() - began_ms) / TICK_MS;
    for (long tick = 0; tick < ticks && held > limit_bytes; tick++) {
      wait_ms(TICK_MS);
      free(malloc(300 * KIB));
      free(malloc(2 * MIB));
      held = rss_bytes() - base_bytes;
    }
    CHECK_MSG(held <= limit_bytes, "%zu KiB resident after blocks of %zu", held / KIB, sizes[i]);
  }
}

static void live_above(void) {
  char *kept = malloc(limit_bytes * 2);
  CHECK(kept != NULL);
  memset(kept, 1, limit_bytes * 2);
  for (int i = 0; i < 60; i++) {
    chain_swing(1000, 4 * MIB);
    chain_swing(100 * KIB, 8 * MIB);
  }
  free(kept);
}

/* Rounds that free nothing come ever later, but growth does not wait for the next one. */
static void change_sizes(void) {
  chain_link *chain = NULL;
  size_t bytes = limit_bytes + limit_bytes / 4, most = bytes + limit_bytes / 2;
  for (size_t done = 0; done < bytes; done += 20000) CHECK(chain_add(&chain, 20000, true));
  for (int tick = 0; tick < 50; tick++) {
    wait_ms(10);
    free(malloc(300 * KIB));
  }
  chain_free(&chain, 20000);
  for (size_t done = 0; done < bytes; done += 3 * MIB) {
    CHECK(chain_add(&chain, 3 * MIB, true));
    size_t held = rss_bytes() - base_bytes;
    CHECK_MSG(held <= most, "%zu KiB resident with %zu of large blocks", held / KIB, done / KIB);
  }
  chain_free(&chain, 3 * MIB);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  limit_bytes = strtoul(argv[1], NULL, 10) * MIB;
  base_bytes = rss_bytes();
  if (strcmp(argv[2], "above") == 0)
    live_above();
  else if (strcmp(argv[2], "change") == 0)
    change_sizes();
  else
    pass_and_free();
  return 0;
}
