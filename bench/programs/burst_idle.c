/* SPDX-License-Identifier: MIT
 *
 * burst_idle: much work, then none.  Threads allocate and write blocks of mixed sizes up to a number
 * of bytes and free them again but one in a hundred; then the process sleeps, its threads alive.  There
 * may be several bursts with sleep between them.
 * Measures the bursts, page faults included, and how much memory an idle process keeps.
 * One operation is one malloc and, but for the survivors, one free; the idle time does not count.
 *
 *   --burst BYTES (200M, all threads together)  --min BYTES (16)  --max BYTES (16K)
 *   --threads N (2)  --idle SECONDS (5)  --survives N (100: one block in N; 0: none)
 *   --trickle N (0: blocks that are allocated, then freed, every 100 ms of the idle time)
 *   --fills N (1: times that a burst is allocated and freed)
 *   --bursts N (1; with more of them there is idle time between them, but none after the last)
 *
 * rss_idle_kib: the resident memory after the idle time, with several bursts the first one's;
 * rss_end_kib: after the last burst.  again_cpu_ms: processor time of a burst that is not the first.
 */
#include "args.h"
#include "blocks.h"
#include "team.h"
#include "ticks.h"

enum { TRICKLE_MAX = 1 << 14 };

static uint64_t burst_bytes = 200 << 20, min_size = 16, max_size = 16 << 10, threads = 2;
static uint64_t trickle, survives = 100, fills = 1, bursts = 1;
static double idle_seconds = 5;

static const struct arg args[] = {
    ARG_COUNT("burst", burst_bytes, 1, UINT64_C(1) << 36, "live bytes at the peak, all threads"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads that share the burst"),
    {.name = "idle", .sentence = "seconds of sleep after a burst", .seconds = &idle_seconds},
    ARG_COUNT("survives", survives, 0, 1 << 30, "one block in N is kept, 0: none"),
    ARG_COUNT("trickle", trickle, 0, TRICKLE_MAX, "blocks every 100 ms while idle"),
    ARG_COUNT("fills", fills, 1, 1 << 20, "times that a burst is allocated and freed"),
    ARG_COUNT("bursts", bursts, 1, 1 << 20, "bursts, with idle time between them"),
};

static const struct usage usage = {"burst_idle", "Allocates and frees a lot, then sleeps.", args,
                                   sizeof args / sizeof args[0]};

static pthread_barrier_t idle_over;
static long rss_idle_kib;
static uint64_t again_cpu_ns;

static unsigned char *new_mixed(struct rng *rng, uint64_t *size) {
  *size = rng_log_between(rng, min_size, max_size);
  unsigned char *block = block_new(*size);
  touch_pages(block, *size);
  touch_ends(block, *size);
  return block;
}

static void trickle_once(struct worker *worker) {
  static unsigned char *blocks[TRICKLE_MAX];
  uint64_t size;
  for (uint64_t i = 0; i < trickle; i++) {
    blocks[i] = new_mixed(&worker->rng, &size);
  }
  for (uint64_t i = 0; i < trickle; i++) {
    free(blocks[i]);
  }
  worker->tally.mallocs += trickle;
  worker->tally.frees += trickle;
}

/* One thread sleeps and trickles, the others wait for it. */
static void be_idle(struct worker *worker) {
  enum { STEPS_PER_SECOND = 100, STEPS_PER_TRICKLE = 10 };
  static const struct timespec step = {.tv_nsec = 1000000000 / STEPS_PER_SECOND};

  uint64_t steps = worker->index == 0 ? (uint64_t)(idle_seconds * STEPS_PER_SECOND) : 0;
  for (uint64_t i = 0; i < steps; i++) {
    nanosleep(&step, NULL);
    if (trickle != 0 && i % STEPS_PER_TRICKLE == 0) {
      trickle_once(worker);
    }
  }
  if (worker->index == 0 && rss_idle_kib == 0) {
    rss_idle_kib = measure_status_kib("VmRSS");
  }
  pthread_barrier_wait(&idle_over);
}

static bool is_survivor(uint64_t index) { return survives != 0 && index % survives == 0; }

/* Returns how many blocks there are, of which only the survivors live. */
static uint64_t fill_once(struct worker *worker, unsigned char **blocks) {
  uint64_t share = burst_bytes / threads, bytes = 0, count = 0, size;
  while (bytes < share) {
    blocks[count++] = new_mixed(&worker->rng, &size);
    bytes += size;
  }
  for (uint64_t i = 0; i < count; i++) {
    if (!is_survivor(i)) {
      free(blocks[i]);
    }
  }
  worker->tally.ops += count;
  worker->tally.mallocs += count;
  worker->tally.frees += count;
  return count;
}

static void free_survivors(unsigned char **blocks, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if (is_survivor(i)) {
      free(blocks[i]);
    }
  }
}

/* Returns as fill_once; the survivors of all but the last fill are gone. */
static uint64_t have_burst(struct worker *worker, unsigned char **blocks) {
  uint64_t start_ns = ticks_monotonic_ns(), count = 0;
  for (uint64_t i = 0; i < fills; i++) {
    free_survivors(blocks, count);
    count = fill_once(worker, blocks);
  }
  if (bursts > 1 && worker->index == 0) {
    worker->tally.busy_ns += ticks_monotonic_ns() - start_ns;
  }
  return count;
}

static void work(struct worker *worker) {
  unsigned char **blocks = own_pages((burst_bytes / threads / min_size + 1) * sizeof *blocks);
  uint64_t count, cpu_ns;

  team_begin(worker);
  count = have_burst(worker, blocks);
  for (uint64_t i = 1; i < bursts; i++) {
    be_idle(worker);
    cpu_ns = ticks_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    free_survivors(blocks, count);
    count = have_burst(worker, blocks);
    if (worker->index == 0) {
      again_cpu_ns += ticks_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    }
  }
  team_end(worker);
  if (bursts == 1) {
    be_idle(worker);
  }
  free_survivors(blocks, count);
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  pthread_barrier_init(&idle_over, NULL, (unsigned)threads);
  struct tally tally = team_run(threads, 1.0, work);
  if (bursts == 1) {
    measure_report(usage.program, &tally, "threads=%llu burst=%llu idle=%g rss_idle_kib=%ld",
                   (unsigned long long)threads, (unsigned long long)burst_bytes, idle_seconds,
                   rss_idle_kib);
  } else {
    measure_report(usage.program, &tally,
                   "threads=%llu burst=%llu idle=%g rss_idle_kib=%ld again_cpu_ms=%.3f",
                   (unsigned long long)threads, (unsigned long long)burst_bytes, idle_seconds,
                   rss_idle_kib, 1e-6 * (double)again_cpu_ns / (double)(bursts - 1));
  }
  return 0;
}
