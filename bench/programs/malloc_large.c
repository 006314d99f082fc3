/* SPDX-License-Identifier: MIT
 *
 * malloc_large: few, very large blocks of random sizes and mixed lives, as in image and table
 * processing.  No cache keyed by exact size ever hits.  Writes one byte a page, so page faults are
 * part of the price.  A fixed number of operations, because the peak of memory grows with it.
 * One operation is one free and one malloc with its writes.
 *
 *   --min BYTES (5M)  --max BYTES (25M)  --slots BLOCKS (20)  --ops N (500)  --threads N (1)
 */
#include "args.h"
#include "slots.h"

static uint64_t slot_count = 20, min_size = 5 << 20, max_size = 25 << 20, ops = 500, threads = 1;

static const struct arg args[] = {
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("slots", slot_count, 1, 1 << 20, "live blocks of each thread"),
    ARG_COUNT("ops", ops, 1, UINT64_MAX / 2, "replacements by each thread"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own slots"),
};

static const struct usage usage = {"malloc_large",
                                   "Replaces random very large blocks, writing to every page.",
                                   args, sizeof args / sizeof args[0]};

static void work(struct worker *worker) {
  struct slots slots = {
      .count = slot_count, .min_size = min_size, .max_size = max_size, .touch = touch_pages};
  slots_work(&slots, worker, ops);
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  if (min_size > max_size) {
    args_refuse(&usage, "--min is above --max");
  }
  struct tally tally = team_run(threads, 1.0, work);
  measure_report(usage.program, &tally, "threads=%llu slots=%llu min=%llu max=%llu",
                 (unsigned long long)threads, (unsigned long long)slot_count,
                 (unsigned long long)min_size, (unsigned long long)max_size);
  return 0;
}
