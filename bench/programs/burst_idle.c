/* SPDX-License-Identifier: MIT
 *
 * burst_idle: much work, then none.  Threads allocate and write blocks of mixed sizes up to a number
 * of bytes and free them again but one in a hundred; then the process sleeps, its threads alive.
 * Measures the burst, page faults included, and how much memory an idle process keeps.
 * One operation is one malloc and, but for the survivors, one free; the idle time does not count.
 *
 *   --burst BYTES (200M, all threads together)  --min BYTES (16)  --max BYTES (16K)
 *   --threads N (2)  --idle SECONDS (5)
 *   --trickle 0|1 (0; 1: ten blocks are allocated and freed every 100 ms of the idle time)
 *
 * rss_idle_kib: the resident memory after the idle time; rss_end_kib: after the burst.
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <time.h>

enum { SURVIVES_ONE_IN = 100, TRICKLE_BLOCKS = 10 };

static uint64_t burst_bytes = 200 << 20, min_size = 16, max_size = 16 << 10, threads = 2;
static uint64_t idle_seconds = 5, trickle = 0;

static const struct arg args[] = {
    ARG_COUNT("burst", burst_bytes, 1, UINT64_C(1) << 36, "live bytes at the peak, all threads"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads that share the burst"),
    ARG_COUNT("idle", idle_seconds, 0, 3600, "seconds of sleep after the burst"),
    ARG_COUNT("trickle", trickle, 0, 1, "1: a few blocks every 100 ms while idle"),
};

static const struct usage usage = {"burst_idle", "Allocates and frees a lot, then sleeps.", args,
                                   sizeof args / sizeof args[0]};

static pthread_barrier_t idle_over;
static long rss_idle_kib;

static unsigned char *new_mixed(struct rng *rng, uint64_t *size) {
  *size = rng_log_between(rng, min_size, max_size);
  unsigned char *block = block_new(*size);
  touch_pages(block, *size);
  touch_ends(block, *size);
  return block;
}

static void trickle_once(struct worker *worker) {
  unsigned char *blocks[TRICKLE_BLOCKS];
  uint64_t size;
  for (int i = 0; i < TRICKLE_BLOCKS; i++) {
    blocks[i] = new_mixed(&worker->rng, &size);
  }
  for (int i = 0; i < TRICKLE_BLOCKS; i++) {
    free(blocks[i]);
  }
  worker->tally.mallocs += TRICKLE_BLOCKS;
  worker->tally.frees += TRICKLE_BLOCKS;
}

/* One thread sleeps and trickles, the others wait for it. */
static void be_idle(struct worker *worker) {
  enum { STEPS_PER_SECOND = 100, STEPS_PER_TRICKLE = 10 };
  static const struct timespec step = {.tv_nsec = 1000000000 / STEPS_PER_SECOND};

  for (uint64_t i = 0; worker->index == 0 && i < idle_seconds * STEPS_PER_SECOND; i++) {
    nanosleep(&step, NULL);
    if (trickle != 0 && i % STEPS_PER_TRICKLE == 0) {
      trickle_once(worker);
    }
  }
  if (worker->index == 0) {
    rss_idle_kib = measure_status_kib("VmRSS");
  }
  pthread_barrier_wait(&idle_over);
}

static void work(struct worker *worker) {
  uint64_t share = burst_bytes / threads, bytes = 0, count = 0, size;
  unsigned char **blocks = own_pages((share / min_size + 1) * sizeof *blocks);

  team_begin(worker);
  while (bytes < share) {
    blocks[count++] = new_mixed(&worker->rng, &size);
    bytes += size;
  }
  for (uint64_t i = 0; i < count; i++) {
    if (i % SURVIVES_ONE_IN != 0) {
      free(blocks[i]);
    }
  }
  team_end(worker);
  be_idle(worker);
  for (uint64_t i = 0; i < count; i += SURVIVES_ONE_IN) {
    free(blocks[i]);
  }
  worker->tally.ops = count;
  worker->tally.mallocs += count;
  worker->tally.frees += count;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  pthread_barrier_init(&idle_over, NULL, (unsigned)threads);
  struct tally tally = team_run(threads, 1.0, work);
  measure_report(usage.program, &tally, "threads=%llu burst=%llu idle=%llu rss_idle_kib=%ld",
                 (unsigned long long)threads, (unsigned long long)burst_bytes,
                 (unsigned long long)idle_seconds, rss_idle_kib);
  return 0;
}
