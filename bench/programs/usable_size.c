/* SPDX-License-Identifier: MIT
 *
 * usable_size: asks for the usable size of live blocks, one after the other, as containers do that fill
 * what they got.
 * One operation is one call of malloc_usable_size.
 *
 *   --blocks N (1024)  --min BYTES (16)  --max BYTES (1M, small ones more often)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "measure.h"
#include "rng.h"

#include <malloc.h>

static uint64_t block_count = 1024, min_size = 16, max_size = 1 << 20;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("blocks", block_count, 1, 1 << 24, "live blocks"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"usable_size", "Asks for the usable size of live blocks.", args,
                                   sizeof args / sizeof args[0]};

static uint64_t ask_all(unsigned char **blocks) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < block_count; i++) {
    sum += malloc_usable_size(blocks[i]);
  }
  return sum;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  unsigned char **blocks = own_pages(block_count * sizeof *blocks);
  struct rng rng = rng_seed(0);
  struct tally tally = {.mallocs = block_count, .frees = block_count};
  uint64_t asked = 0;

  for (uint64_t i = 0; i < block_count; i++) {
    size_t size = rng_steep_between(&rng, min_size, max_size);
    blocks[i] = block_new(size);
    asked += size;
  }
  uint64_t usable = ask_all(blocks);
  measure_start(seconds);
  do {
    if (ask_all(blocks) != usable) {
      give_up("a usable size changed");
    }
    tally.ops += block_count;
  } while (!measure_expired());
  measure_stop();
  for (uint64_t i = 0; i < block_count; i++) {
    free(blocks[i]);
  }
  if (usable < asked) {
    give_up("usable sizes are below what was asked for");
  }
  measure_report(usage.program, &tally, "blocks=%llu min=%llu max=%llu",
                 (unsigned long long)block_count, (unsigned long long)min_size,
                 (unsigned long long)max_size);
  return 0;
}
