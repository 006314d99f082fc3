/* SPDX-License-Identifier: MIT
 *
 * tail_latency: how long single calls of malloc and free take, the rare slow ones above all.  Replaces
 * random blocks of mixed sizes, small ones more often, and times each call by itself.  The working
 * set is filled and replaced twice before the first call that counts.
 * One operation is one call; ns_per_op is the mean of the timed calls, not wall time.
 *
 *   --calls N (8M, all threads together)  --slots BLOCKS (4096, per thread)  --min BYTES (16)
 *   --max BYTES (32K)  --threads N (1)
 *
 * p50_ns, p99_ns, p999_ns, p9999_ns, max_ns: of all calls.  The median time of two readings of the
 * clock with nothing between them is subtracted from each (overhead_ns); numbers are right to 3 % and
 * not below 0.  From p9999_ns on the machine is in it too, for an interrupt or another process during
 * a call counts as the call's time: compare allocators on one machine, and medians of runs.
 */
#include "args.h"
#include "histogram.h"
#include "slots.h"
#include "ticks.h"

static uint64_t calls = 8 << 20, slot_count = 4096, min_size = 16, max_size = 32 << 10, threads = 1;

static const struct arg args[] = {
    ARG_COUNT("calls", calls, 1 << 10, UINT64_MAX / 2, "timed calls, all threads together"),
    ARG_COUNT("slots", slot_count, 1, 1 << 28, "live blocks of each thread"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own slots"),
};

static const struct usage usage = {"tail_latency",
                                   "Times single calls of malloc and free under a mixed load.",
                                   args, sizeof args / sizeof args[0]};

static struct histogram *histograms; /* one for each thread */
static uint64_t overhead;            /* ticks */

static unsigned char *make(uint64_t least, uint64_t most, struct rng *rng) {
  size_t size = rng_steep_between(rng, least, most);
  unsigned char *block = block_new(size);
  touch_ends(block, size);
  return block;
}

static void record(struct histogram *histogram, uint64_t start, uint64_t stop) {
  uint64_t ticks = stop - start;
  histogram_add(histogram, ticks > overhead ? ticks - overhead : 0);
}

static void replace_timed(struct slots *slots, struct rng *rng, struct histogram *histogram) {
  unsigned char **slot = &slots->blocks[rng_below(rng, slots->count)];
  size_t size = rng_steep_between(rng, min_size, max_size);
  uint64_t start = ticks_now();
  free(*slot);
  uint64_t freed = ticks_now();
  unsigned char *block = malloc(size);
  uint64_t allocated = ticks_now();
  if (block == NULL) {
    out_of_memory(size);
  }
  touch_ends(block, size);
  *slot = block;
  record(histogram, start, freed);
  record(histogram, freed, allocated);
}

static void work(struct worker *worker) {
  struct slots slots = {
      .count = slot_count, .min_size = min_size, .max_size = max_size, .make = make};
  struct histogram *histogram = &histograms[worker->index];
  uint64_t pairs = calls / threads / 2;

  touch_pages((unsigned char *)histogram, sizeof *histogram);
  *histogram = (struct histogram){0};
  slots_fill(&slots, &worker->rng, &worker->tally);
  slots_replace(&slots, &worker->rng, &worker->tally, 2 * slot_count);
  team_begin(worker);
  for (uint64_t i = 0; i < pairs; i++) {
    replace_timed(&slots, &worker->rng, histogram);
  }
  team_end(worker);
  slots_empty(&slots, &worker->tally);
  worker->tally.ops = 2 * pairs;
  worker->tally.mallocs += pairs;
  worker->tally.frees += pairs;
}

static uint64_t clock_overhead(void) {
  enum { PAIRS = 100000 };
  struct histogram *histogram = own_pages(sizeof *histogram);
  for (int i = 0; i < PAIRS; i++) {
    uint64_t start = ticks_now();
    histogram_add(histogram, ticks_now() - start);
  }
  return histogram_quantile(histogram, 0.5);
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  histograms = own_pages(threads * sizeof *histograms);
  overhead = clock_overhead();
  double ns = ticks_ns();
  struct tally tally = team_run(threads, 1.0, work);
  struct histogram *all = &histograms[0];
  for (uint64_t i = 1; i < threads; i++) {
    histogram_merge(all, &histograms[i]);
  }
  tally.busy_ns = (uint64_t)(ns * (double)all->sum);
  measure_report(
      usage.program, &tally,
      "threads=%llu slots=%llu min=%llu max=%llu p50_ns=%.1f p99_ns=%.1f p999_ns=%.1f "
      "p9999_ns=%.0f max_ns=%.0f overhead_ns=%.1f",
      (unsigned long long)threads, (unsigned long long)slot_count, (unsigned long long)min_size,
      (unsigned long long)max_size, ns * (double)histogram_quantile(all, 0.5),
      ns * (double)histogram_quantile(all, 0.99), ns * (double)histogram_quantile(all, 0.999),
      ns * (double)histogram_quantile(all, 0.9999), ns * (double)all->most, ns * (double)overhead);
  return 0;
}
