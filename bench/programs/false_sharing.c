/* SPDX-License-Identifier: MIT
 *
 * false_sharing: do blocks of different threads lie in one cache line?  Each thread allocates a small
 * block, writes to it many times and frees it, again and again, after the classical cache-thrash
 * (active: the allocator may put the threads' blocks side by side) and cache-scratch (passive: each
 * thread first frees a block that the main thread allocated beside those of the others, and an
 * allocator that gives it back to this thread shares the line from then on).
 * One operation is one malloc, the writes and one free.
 * first: a thread keeps the block of its first call, and an operation is the writes alone.
 *
 * A thread writes to the first byte and reads the last, another one: a processor reads a byte that it
 * wrote itself from its store buffer, even if another processor has the line.  The byte written does not
 * depend on the byte read: counting up a byte in memory is a chain of stores and loads, which took 90
 * or 300 ns on one Xeon, at any address, depending on the instructions before the loop.
 *
 *   --kind active|passive|first (active)  --size BYTES (8)  --writes N (100)  --threads N (2)
 *   --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

enum { KIND_ACTIVE, KIND_PASSIVE, KIND_FIRST };
static const char *const kind_names[] = {"active", "passive", "first", NULL};

static size_t kind = KIND_ACTIVE;
static uint64_t size = 8, writes = 100, threads = 2;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_CHOICE("kind", kind, kind_names, "lines shared by new, reused, or first blocks"),
    ARG_COUNT("size", size, 1, ARGS_SIZE_MAX, "bytes of a block"),
    ARG_COUNT("writes", writes, 1, 1 << 30, "times that a block is written and read"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with one block at a time"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"false_sharing",
                                   "Threads write to small blocks that may share a cache line.",
                                   args, sizeof args / sizeof args[0]};

static unsigned char **handed_out; /* passive: one block for each thread */

static void write_often(volatile unsigned char *block) {
  block[0] = 0;
  block[size - 1] = 0;
  for (uint64_t i = 0; i < writes; i++) {
    (void)block[size - 1];
    block[0] = (unsigned char)i;
  }
}

static void one_operation(unsigned char *kept) {
  unsigned char *block = kept ? kept : block_new(size);
  write_often(block);
  if (!kept) free(block);
}

static void work(struct worker *worker) {
  enum { OPS_BETWEEN_CLOCKS = 64 };
  uint64_t ops = 0;

  if (kind == KIND_PASSIVE) {
    free(handed_out[worker->index]);
    worker->tally.mallocs = worker->tally.frees = 1;
  }
  unsigned char *kept = kind == KIND_FIRST ? block_new(size) : NULL;
  team_begin(worker);
  do {
    for (int i = 0; i < OPS_BETWEEN_CLOCKS; i++) {
      one_operation(kept);
    }
    ops += OPS_BETWEEN_CLOCKS;
  } while (!measure_expired());
  team_end(worker);
  worker->tally.ops = ops;
  if (kept) ops = 1;
  worker->tally.mallocs += ops;
  worker->tally.frees += ops;
  free(kept);
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  handed_out = own_pages(threads * sizeof *handed_out);
  for (uint64_t i = 0; kind == KIND_PASSIVE && i < threads; i++) {
    handed_out[i] = block_new(size);
    touch_ends(handed_out[i], size);
  }
  struct tally tally = team_run(threads, seconds, work);
  measure_report(usage.program, &tally, "kind=%s threads=%llu size=%llu writes=%llu",
                 kind_names[kind], (unsigned long long)threads, (unsigned long long)size,
                 (unsigned long long)writes);
  return 0;
}
