/* SPDX-License-Identifier: MIT
 *
 * aligned: blocks at addresses that are multiples of 32 to 4,096, as vector code, direct input and
 * output and C++'s aligned new ask for.  Replaces random blocks of a working set; alternates between
 * aligned_alloc and posix_memalign by chance.
 * One operation is one free and one of these calls.
 *
 *   --alignment BYTES (0: 32 to 4,096 by chance; else this one, a power of two)
 *   --slots BLOCKS (1024, per thread)  --min BYTES (16)  --max BYTES (64K, small ones more often)
 *   --threads N (1)  --seconds S (1)
 *
 * misaligned: blocks in a thousand that are not aligned as asked.  Anything but 0 is an error of the
 * allocator (mimalloc 2.0.9 has it), counted and not fatal, so that the others can be compared.
 * addresses_kib: most address space of the process, less that before the first block.
 */
#include "slots_program.h"

#include <stdatomic.h>

enum { LEAST_ALIGNMENT = 32, ALIGNMENTS = 8 }; /* 32, 64 … 4096 */

static struct slots_load load = {
    .count = 1024, .min_size = 16, .max_size = 64 << 10, .threads = 1, .seconds = 1.0};

static uint64_t one_alignment;

static const struct arg args[] = {
    ARG_COUNT("alignment", one_alignment, 0, ARGS_SIZE_MAX, "the only alignment, 0: 32 to 4096"),
    SLOTS_ARGS(load), SLOTS_ARG_THREADS(load), ARG_SECONDS(load.seconds)};

static const struct usage usage = {"aligned", "Replaces random blocks that ask for an alignment.",
                                   args, sizeof args / sizeof args[0]};

static _Atomic uint64_t misaligned;

/* aligned_alloc may want a multiple of the alignment: a small block that is to be aligned to much
 * goes the other way. */
static unsigned char *new_aligned(size_t alignment, size_t size, bool posix) {
  posix |= one_alignment > size;
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
  size_t alignment = one_alignment != 0 ? one_alignment : (size_t)LEAST_ALIGNMENT << choice / 2;
  unsigned char *block = new_aligned(alignment, size, choice % 2 == 0);
  if (__builtin_expect((uintptr_t)block % alignment != 0, 0)) {
    atomic_fetch_add_explicit(&misaligned, 1, memory_order_relaxed);
  }
  touch_ends(block, size);
  return block;
}

static void work(struct worker *worker) { slots_load_work(&load, worker, make); }

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, load.min_size, load.max_size);
  if (one_alignment != 0 &&
      (one_alignment < sizeof(void *) || one_alignment & (one_alignment - 1))) {
    args_refuse(&usage, "--alignment is not a power of two from 8 on");
  }
  long before_kib = measure_status_kib("VmPeak");
  struct tally tally = team_run(load.threads, load.seconds, work);
  measure_report(usage.program, &tally,
                 "threads=%llu slots=%llu min=%llu max=%llu misaligned=%.1f addresses_kib=%ld",
                 (unsigned long long)load.threads, (unsigned long long)load.count,
                 (unsigned long long)load.min_size, (unsigned long long)load.max_size,
                 1e3 * (double)misaligned / (double)tally.mallocs,
                 measure_status_kib("VmPeak") - before_kib);
  return 0;
}
