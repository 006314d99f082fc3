/* SPDX-License-Identifier: MIT
 *
 * growth: the cost of new memory in a process that has many threads, or has been larger before.  Threads
 * allocate a little and sleep; the main thread fills up to a peak with blocks of one size, frees all
 * or most, waits until the allocator has returned the memory, and leaves holes that are too small between
 * live blocks; then it allocates blocks of another size and keeps them.  Each part can be left out.  Only
 * the last is measured; without --write its page faults are not, as all allocators have the same ones.
 * One operation is one malloc, or with --unit the growth by that number of bytes.
 *
 *   --threads N (0, asleep)  --peak BYTES (0)  --peak-size BYTES (1K)  --survives N (0: none; else one in N)
 *   --wait MS (3000, after the peak)  --holes N (0: freed blocks of two thirds of the size)
 *   --size BYTES (300000)  --count N (1000)  --write 0|1 (0; 1: to every page of the new blocks)
 *   --unit BYTES (0: one operation is one malloc)
 *
 * rss_after_peak_kib: the resident memory after the wait, if there was a peak.
 */
#include "args.h"
#include "calls.h"
#include "measure.h"
#include "rng.h"
#include "sleepers.h"

static uint64_t threads, peak_bytes, peak_size = 1 << 10, survives, wait_ms = 3000, holes;
static uint64_t size = 300000, count = 1000, write_pages, unit;

static const struct arg args[] = {
    ARG_COUNT("threads", threads, 0, ARGS_THREADS_MAX, "threads that sleep"),
    ARG_COUNT("peak", peak_bytes, 0, UINT64_C(1) << 36, "bytes that are filled and freed before"),
    ARG_COUNT("peak-size", peak_size, 1, ARGS_SIZE_MAX, "bytes of a block of the peak"),
    ARG_COUNT("survives", survives, 0, 1 << 30, "one in N of its blocks is kept, 0: none"),
    ARG_COUNT("wait", wait_ms, 0, 3600000, "milliseconds after the peak"),
    ARG_COUNT("holes", holes, 0, 1 << 20, "freed blocks of two thirds of the size"),
    ARG_COUNT("size", size, 1, ARGS_SIZE_MAX, "bytes of a block of the growth"),
    ARG_COUNT("count", count, 1, 1 << 28, "blocks of the growth"),
    ARG_COUNT("write", write_pages, 0, 1, "1: every page of the new blocks is written to"),
    ARG_COUNT("unit", unit, 0, ARGS_SIZE_MAX, "bytes of growth that are one operation"),
};

static const struct usage usage = {"growth", "Allocates new memory beside threads or after a peak.",
                                   args, sizeof args / sizeof args[0]};

static long rss_after_peak_kib;

/* Goes on with a little, because some allocators give memory back only within calls. */
static void wait_with_some_calls(struct tally *tally) {
  enum { STEP_MS = 10, BLOCKS = 100, SMALLEST = 16, LARGEST = 256 << 10 };
  struct rng rng = rng_seed(0);
  unsigned char *blocks[BLOCKS];
  for (uint64_t ms = 0; ms < wait_ms; ms += STEP_MS) {
    for (int i = 0; i < BLOCKS; i++) {
      blocks[i] = block_new(rng_log_between(&rng, SMALLEST, LARGEST));
      blocks[i][0] = 1;
    }
    for (int i = 0; i < BLOCKS; i++) {
      free(blocks[i]);
    }
    tally->mallocs += BLOCKS;
    tally->frees += BLOCKS;
    sleep_ms(STEP_MS);
  }
}

static void have_peak(struct tally *tally) {
  uint64_t blocks_count = peak_bytes / peak_size;
  unsigned char **blocks = own_pages((blocks_count + 1) * sizeof *blocks);
  for (uint64_t i = 0; i < blocks_count; i++) {
    blocks[i] = block_new(peak_size);
    touch_pages(blocks[i], peak_size);
  }
  for (uint64_t i = 0; i < blocks_count; i++) {
    if (survives == 0 || i % survives != 0) {
      free(blocks[i]);
      tally->frees++;
    }
  }
  munmap(blocks, (blocks_count + 1) * sizeof *blocks);
  tally->mallocs += blocks_count;
  wait_with_some_calls(tally);
}

/* Every other one of a row of blocks is freed again, so that holes cannot merge. */
static void leave_holes(struct tally *tally) {
  uint64_t hole_bytes = size - size / 3;
  unsigned char **blocks = own_pages(2 * holes * sizeof *blocks);
  for (uint64_t i = 0; i < 2 * holes; i++) {
    blocks[i] = block_new(hole_bytes);
    touch_pages(blocks[i], i % 2 == 0 ? 1 : hole_bytes);
  }
  for (uint64_t i = 1; i < 2 * holes; i += 2) {
    free(blocks[i]);
  }
  tally->mallocs += 2 * holes;
  tally->frees += holes;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  unsigned char **blocks = own_pages(count * sizeof *blocks);
  struct tally tally = {.ops = unit == 0 ? count : (count * size + unit - 1) / unit};

  touch_pages((unsigned char *)blocks, count * sizeof *blocks);
  sleepers_start(threads);
  if (peak_bytes != 0) {
    have_peak(&tally);
    rss_after_peak_kib = measure_status_kib("VmRSS");
  }
  if (holes != 0) {
    leave_holes(&tally);
  }
  measure_start(1.0);
  for (uint64_t i = 0; i < count; i++) {
    blocks[i] = block_new(size);
    touch_pages(blocks[i], write_pages != 0 ? size : 0);
  }
  measure_stop();
  for (uint64_t i = 0; i < count; i++) {
    free(blocks[i]);
  }
  tally.mallocs += count;
  tally.frees += count;
  measure_report(usage.program, &tally, "threads=%llu peak=%llu size=%llu rss_after_peak_kib=%ld",
                 (unsigned long long)threads, (unsigned long long)peak_bytes,
                 (unsigned long long)size, rss_after_peak_kib);
  return 0;
}
