/* SPDX-License-Identifier: MIT
 *
 * random_mixed: a working set of small blocks of mixed sizes and random lives.  Each thread frees a
 * random block of its own and puts a new one of random size in its place.
 * One operation is one free and one malloc.
 *
 *   --slots BLOCKS (4096, per thread)  --min BYTES (16)  --max BYTES (1040)
 *   --threads N (1)  --seconds S (1)
 */
#include "args.h"
#include "slots.h"

static uint64_t slot_count = 4096, min_size = 16, max_size = 1040, threads = 1;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("slots", slot_count, 1, 1 << 28, "live blocks of each thread"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own slots"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"random_mixed",
                                   "Replaces random blocks of a working set of small blocks.", args,
                                   sizeof args / sizeof args[0]};

static void work(struct worker *worker) {
  struct slots slots = {
      .count = slot_count, .min_size = min_size, .max_size = max_size, .touch = touch_ends};
  slots_work(&slots, worker, 0);
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  if (min_size > max_size) {
    args_refuse(&usage, "--min is above --max");
  }
  struct tally tally = team_run(threads, seconds, work);
  measure_report(usage.program, &tally, "threads=%llu slots=%llu min=%llu max=%llu",
                 (unsigned long long)threads, (unsigned long long)slot_count,
                 (unsigned long long)min_size, (unsigned long long)max_size);
  return 0;
}
