/* SPDX-License-Identifier: MIT
 *
 * large_mixed: large blocks of all sizes and random lives, as in image and data processing.  Every
 * doubling of the size is as likely as the next.  Writes one byte a page, so page faults are part of
 * the price.  A fixed number of operations, because the peak of memory grows with it.
 * One operation is one free and one malloc with its writes.
 *
 *   --min BYTES (32K)  --max BYTES (8M)  --slots BLOCKS (64, per thread)
 *   --ops N (6000, per thread)  --threads N (1)
 */
#include "slots_program.h"

static struct slots_load load = {.count = 64,
                                 .min_size = 32 << 10,
                                 .max_size = 8 << 20,
                                 .threads = 1,
                                 .ops = 6000,
                                 .seconds = 1.0};

static const struct arg args[] = {SLOTS_ARGS(load), SLOTS_ARG_THREADS(load), SLOTS_ARG_OPS(load)};

static const struct usage usage = {"large_mixed",
                                   "Replaces random large blocks of 32 KiB to 8 MiB.", args,
                                   sizeof args / sizeof args[0]};

static unsigned char *make(uint64_t min_size, uint64_t max_size, struct rng *rng) {
  size_t size = rng_log_between(rng, min_size, max_size);
  unsigned char *block = block_new(size);
  touch_pages(block, size);
  return block;
}

static void work(struct worker *worker) { slots_load_work(&load, worker, make); }

int main(int argc, char **argv) { return slots_load_main(&usage, &load, work, argc, argv); }
