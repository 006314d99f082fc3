/* SPDX-License-Identifier: MIT
 *
 * malloc_large: few, very large blocks of random sizes and mixed lives, as in image and table
 * processing.  No cache keyed by exact size ever hits.  Writes one byte a page, so page faults are
 * part of the price.  A fixed number of operations, because the peak of memory grows with it.
 * One operation is one free and one malloc with its writes.
 *
 *   --min BYTES (5M)  --max BYTES (25M)  --slots BLOCKS (20)  --ops N (500)  --threads N (1)
 *   --touch BYTES (0: all; else only the pages of the first BYTES of a block)
 */
#include "slots_program.h"

static struct slots_load load = {.count = 20,
                                 .min_size = 5 << 20,
                                 .max_size = 25 << 20,
                                 .threads = 1,
                                 .ops = 500,
                                 .seconds = 1.0};

static uint64_t touched_bytes;

static const struct arg args[] = {
    SLOTS_ARGS(load), SLOTS_ARG_THREADS(load), SLOTS_ARG_OPS(load),
    ARG_COUNT("touch", touched_bytes, 0, ARGS_SIZE_MAX, "bytes of a block to write to, 0: all")};

static const struct usage usage = {"malloc_large",
                                   "Replaces random very large blocks, writing to every page.",
                                   args, sizeof args / sizeof args[0]};

static unsigned char *make(uint64_t min_size, uint64_t max_size, struct rng *rng) {
  size_t size = rng_between(rng, min_size, max_size);
  unsigned char *block = block_new(size);
  touch_pages(block, touched_bytes != 0 && touched_bytes < size ? touched_bytes : size);
  return block;
}

static void work(struct worker *worker) { slots_load_work(&load, worker, make); }

int main(int argc, char **argv) { return slots_load_main(&usage, &load, work, argc, argv); }
