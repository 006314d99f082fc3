/* SPDX-License-Identifier: MIT
 *
 * aligned: blocks at addresses that are multiples of 32 to 4,096, as vector code, direct input and
 * output and C++'s aligned new ask for.  Replaces random blocks of a working set; alternates between
 * aligned_alloc and posix_memalign by chance, and checks each address.
 * One operation is one free and one of these calls.
 *
 *   --min BYTES (16)  --max BYTES (64K, small ones more often)  --slots BLOCKS (1024, per thread)
 *   --threads N (1)  --seconds S (1)
 */
#include "slots_program.h"

enum { LEAST_ALIGNMENT = 32, ALIGNMENTS = 8 }; /* 32, 64 … 4096 */

static struct slots_load load = {
    .count = 1024, .min_size = 16, .max_size = 64 << 10, .threads = 1, .seconds = 1.0};

static const struct arg args[] = {SLOTS_ARGS(load), SLOTS_ARG_THREADS(load),
                                  ARG_SECONDS(load.seconds)};

static const struct usage usage = {"aligned",
                                   "Replaces random blocks that ask for alignments of 32 to 4096.",
                                   args, sizeof args / sizeof args[0]};

/* aligned_alloc wants a multiple of the alignment. */
static unsigned char *new_aligned(size_t alignment, size_t size, bool posix) {
  void *block = NULL;
  if (!posix) {
    block = aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  } else if (posix_memalign(&block, alignment, size) != 0) {
    block = NULL;
  }
  if (block == NULL) {
    out_of_memory(size);
  }
  return block;
}

static unsigned char *make(uint64_t min_size, uint64_t max_size, struct rng *rng) {
  size_t size = rng_steep_between(rng, min_size, max_size);
  uint64_t choice = rng_below(rng, 2 * ALIGNMENTS);
  size_t alignment = (size_t)LEAST_ALIGNMENT << choice / 2;
  unsigned char *block = new_aligned(alignment, size, choice % 2 == 0);
  if ((uintptr_t)block % alignment != 0) {
    give_up("a block is not aligned");
  }
  touch_ends(block, size);
  return block;
}

static void work(struct worker *worker) { slots_load_work(&load, worker, make); }

int main(int argc, char **argv) { return slots_load_main(&usage, &load, work, argc, argv); }
