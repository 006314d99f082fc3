/* SPDX-License-Identifier: MIT
 *
 * idle_threads: a server with many threads of which few have work.  The idle ones have allocated and
 * freed a little, keep a few blocks, and sleep; the active ones replace random small blocks.  Tells
 * what an allocator keeps for a thread that does nothing, and whether such threads slow down others.
 * One operation is one free and one malloc of an active thread.
 *
 *   --threads N (1000)  --active N (10, of these)  --blocks N (50, per idle thread)
 *   --keep N (10, of these)  --slots BLOCKS (1024, per active thread)  --min BYTES (16)
 *   --max BYTES (512)  --seconds S (1)
 *
 * rss_per_idle_thread_bytes: resident memory when the idle threads have allocated, less that when
 * all threads had only started, for each of them; the blocks they keep are in it.
 */
#include "args.h"
#include "slots.h"

static uint64_t threads = 1000, active = 10, block_count = 50, keep = 10;
static uint64_t slot_count = 1024, min_size = 16, max_size = 512;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, the active ones included"),
    ARG_COUNT("active", active, 1, ARGS_THREADS_MAX, "threads that work"),
    ARG_COUNT("blocks", block_count, 0, 1 << 20, "blocks that an idle thread allocates"),
    ARG_COUNT("keep", keep, 0, 1 << 20, "blocks that it does not free"),
    ARG_COUNT("slots", slot_count, 1, 1 << 28, "live blocks of each active thread"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"idle_threads",
                                   "Few threads work beside many that have done a little.", args,
                                   sizeof args / sizeof args[0]};

static pthread_barrier_t all_threads;
static long started_rss_kib, idle_rss_kib;

/* The pages of its stack that a thread may need later are counted before the first block. */
static void touch_stack(void) {
  unsigned char bytes[16 << 10];
  touch_pages(bytes, sizeof bytes);
  __asm__ volatile("" ::"r"(bytes) : "memory");
}

/* All threads wait until the first one has read the resident memory. */
static void all_read_rss(const struct worker *worker, long *rss_kib) {
  pthread_barrier_wait(&all_threads);
  if (worker->index == 0) {
    *rss_kib = measure_status_kib("VmRSS");
  }
  pthread_barrier_wait(&all_threads);
}

static void allocate_a_little(struct slots *slots, struct worker *worker) {
  slots_fill(slots, &worker->rng, &worker->tally);
  for (uint64_t i = keep; i < block_count; i++) {
    free(slots->blocks[i]);
    slots->blocks[i] = NULL;
  }
  worker->tally.frees += block_count - keep;
}

static void be_idle(struct slots *slots, struct worker *worker) {
  team_begin(worker);
  team_end(worker);
  for (uint64_t i = 0; i < keep; i++) {
    free(slots->blocks[i]);
  }
  worker->tally.frees += keep;
}

static void work(struct worker *worker) {
  bool idle = worker->index >= active;
  struct slots slots = {.count = idle ? block_count : slot_count,
                        .min_size = min_size,
                        .max_size = max_size,
                        .make = slots_make_small};

  touch_stack();
  all_read_rss(worker, &started_rss_kib);
  if (idle) {
    allocate_a_little(&slots, worker);
  }
  all_read_rss(worker, &idle_rss_kib);
  if (idle) {
    be_idle(&slots, worker);
  } else {
    slots_work(&slots, worker, 0);
  }
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  if (active >= threads || keep > block_count) {
    args_refuse(&usage, "--active must be below --threads, and --keep not above --blocks");
  }
  pthread_barrier_init(&all_threads, NULL, (unsigned)threads);
  struct tally tally = team_run(threads, seconds, work);
  double grown = 1024.0 * (double)(idle_rss_kib - started_rss_kib);
  measure_report(usage.program, &tally,
                 "threads=%llu active=%llu blocks=%llu keep=%llu rss_per_idle_thread_bytes=%.0f",
                 (unsigned long long)threads, (unsigned long long)active,
                 (unsigned long long)block_count, (unsigned long long)keep,
                 grown / (double)(threads - active));
  return 0;
}
