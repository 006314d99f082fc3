/* SPDX-License-Identifier: MIT
 *
 * larson: a server whose threads come and go while its objects stay, after the classical benchmark
 * of Larson and Krishnan.  Each thread owns an array of live blocks and replaces random ones by new
 * ones of random size.  After `rounds` times as many replacements as it has blocks, it hands the
 * array to a NEW thread and ends; the new thread frees what its predecessors allocated.  The first
 * owner of every block is the main thread.
 * One operation is one free and one malloc.
 *
 *   --profile small|mid|large (small)   8-1024 B x 5000, 2-32 KiB x 1000, 32-512 KiB x 100 blocks
 *   --min BYTES  --max BYTES  --blocks N (per thread)            instead of the profile's
 *   --rounds N (100)  --threads N (1, alive at a time)  --seconds S (1)
 */
#include "args.h"
#include "slots.h"

#include <semaphore.h>

struct profile {
  uint64_t min_size, max_size, blocks;
};

static const char *const profile_names[] = {"small", "mid", "large", NULL};
static const struct profile profiles[] = {
    {8, 1024, 5000},
    {2 << 10, 32 << 10, 1000},
    {32 << 10, 512 << 10, 100},
};

static size_t profile;
static uint64_t min_size, max_size, block_count, rounds = 100, threads = 1;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_CHOICE("profile", profile, profile_names, "sizes and number of blocks"),
    ARG_COUNT("min", min_size, 0, ARGS_SIZE_MAX, "bytes of the smallest block, 0: the profile's"),
    ARG_COUNT("max", max_size, 0, ARGS_SIZE_MAX, "bytes of the largest block, 0: the profile's"),
    ARG_COUNT("blocks", block_count, 0, 1 << 28, "live blocks of a thread, 0: the profile's"),
    ARG_COUNT("rounds", rounds, 1, 1 << 30, "replacements of a thread's life, per block"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads alive at a time"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {
    "larson", "Threads replace random blocks, hand them over to new threads and end.", args,
    sizeof args / sizeof args[0]};

/* One array of blocks and the line of threads that own it, one after the other. */
struct lineage {
  alignas(128) struct slots slots;
  struct rng rng;
  struct tally tally;
  uint64_t lives;
  pthread_t newest;
  bool has_predecessor;
};

static sem_t finished_lineages;

/* True when the time was over first. */
static bool live_one_life(struct lineage *lineage) {
  enum { OPS_BETWEEN_CLOCKS = 128 };
  struct slots slots = lineage->slots; /* locals: the loop must not reload them */
  struct rng rng = lineage->rng;
  struct tally tally = lineage->tally;
  uint64_t left = rounds * slots.count;
  bool expired = false;

  while (left > 0 && !expired) {
    uint64_t count = left < OPS_BETWEEN_CLOCKS ? left : OPS_BETWEEN_CLOCKS;
    slots_replace(&slots, &rng, &tally, count);
    left -= count;
    expired = measure_expired();
  }
  lineage->rng = rng;
  lineage->tally = tally;
  lineage->lives++;
  return expired;
}

/* The predecessor is joined at the end of a life, not at its start, so that it may still be ending
 * while its successor works, as in the original. */
static void *run_life(void *argument) {
  struct lineage *lineage = argument;
  pthread_t predecessor = lineage->newest;
  bool expired = live_one_life(lineage);

  if (lineage->has_predecessor) {
    pthread_join(predecessor, NULL);
  }
  lineage->has_predecessor = true;
  lineage->newest = pthread_self();
  if (expired) {
    sem_post(&finished_lineages);
  } else {
    thread_start(run_life, lineage);
  }
  return NULL;
}

static void run_lineages(struct lineage *lineages) {
  measure_start(seconds);
  for (uint64_t i = 0; i < threads; i++) {
    thread_start(run_life, &lineages[i]);
  }
  for (uint64_t i = 0; i < threads; i++) {
    sem_wait(&finished_lineages);
  }
  measure_stop();
  for (uint64_t i = 0; i < threads; i++) {
    pthread_join(lineages[i].newest, NULL);
  }
}

static void apply_profile(void) {
  min_size = min_size != 0 ? min_size : profiles[profile].min_size;
  max_size = max_size != 0 ? max_size : profiles[profile].max_size;
  block_count = block_count != 0 ? block_count : profiles[profile].blocks;
  args_check_sizes(&usage, min_size, max_size);
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  apply_profile();

  struct lineage *lineages = own_pages(threads * sizeof *lineages);
  struct tally sum = {0};
  uint64_t lives = 0;
  sem_init(&finished_lineages, 0, 0);
  for (uint64_t i = 0; i < threads; i++) {
    lineages[i].slots = (struct slots){
        .count = block_count, .min_size = min_size, .max_size = max_size, .make = slots_make_small};
    lineages[i].rng = rng_seed(i);
    slots_fill(&lineages[i].slots, &lineages[i].rng, &lineages[i].tally);
  }
  run_lineages(lineages);
  for (uint64_t i = 0; i < threads; i++) {
    slots_empty(&lineages[i].slots, &lineages[i].tally);
    tally_add(&sum, &lineages[i].tally);
    lives += lineages[i].lives;
  }
  measure_report(usage.program, &sum, "threads=%llu min=%llu max=%llu blocks=%llu lives=%llu",
                 (unsigned long long)threads, (unsigned long long)min_size,
                 (unsigned long long)max_size, (unsigned long long)block_count,
                 (unsigned long long)lives);
  return 0;
}
