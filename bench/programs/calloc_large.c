/* SPDX-License-Identifier: MIT
 *
 * calloc_large: zeroed tables that are read before they are written, or never written.  Replaces
 * random blocks from calloc; every page of a new block is read, and of every other block written, so
 * that its memory must be cleaned before it is zeroed memory again.  A fixed number of operations.
 * One operation is one free and one calloc with its reads and writes.
 *
 *   --min BYTES (64K)  --max BYTES (16M, every doubling as likely as the next)
 *   --slots BLOCKS (8, per thread)  --ops N (1000)  --threads N (1)
 */
#include "slots_program.h"

static struct slots_load load = {.count = 8,
                                 .min_size = 64 << 10,
                                 .max_size = 16 << 20,
                                 .threads = 1,
                                 .ops = 1000,
                                 .seconds = 1.0};

static const struct arg args[] = {SLOTS_ARGS(load), SLOTS_ARG_THREADS(load), SLOTS_ARG_OPS(load)};

static const struct usage usage = {"calloc_large",
                                   "Replaces random large blocks from calloc, reading every page.",
                                   args, sizeof args / sizeof args[0]};

static void check_zero(const unsigned char *block, size_t size) {
  unsigned char any = block[size - 1];
  for (size_t at = 0; at < size; at += TOUCH_STEP_BYTES) {
    any |= block[at];
  }
  if (any != 0) {
    give_up("calloc gave memory that is not zero");
  }
}

static unsigned char *make(uint64_t min_size, uint64_t max_size, struct rng *rng) {
  size_t size = rng_log_between(rng, min_size, max_size);
  unsigned char *block = calloc(1, size);
  if (block == NULL) {
    out_of_memory(size);
  }
  check_zero(block, size);
  if (rng_below(rng, 2) == 0) {
    touch_pages(block, size);
  }
  return block;
}

static void work(struct worker *worker) { slots_load_work(&load, worker, make); }

int main(int argc, char **argv) { return slots_load_main(&usage, &load, work, argc, argv); }
