/* SPDX-License-Identifier: MIT
 *
 * churn: thread churn.  Threads live only for one small task: free what the predecessor in the same
 * lane left, allocate blocks, free every other one, leave the rest, end.  Measures the cost
 * for an allocator to set up and clean up a thread, and what becomes of the blocks that it leaves.
 * One operation is one thread's life.
 *
 *   --lanes N (4, threads alive at a time)  --blocks N (200, per life)  --min BYTES (16)
 *   --max BYTES (1024)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

static uint64_t lane_count = 4, block_count = 200, min_size = 16, max_size = 1024;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("lanes", lane_count, 1, ARGS_THREADS_MAX, "threads alive at a time"),
    ARG_COUNT("blocks", block_count, 1, 1 << 24, "blocks that a thread allocates"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {
    "churn", "Starts threads that do one small task, leave some blocks and end.", args,
    sizeof args / sizeof args[0]};

struct lane {
  alignas(128) unsigned char **blocks; /* left by the last thread: NULL or live */
  struct rng rng;
  struct tally tally;
  pthread_t thread;
};

static void free_all(struct lane *lane) {
  for (uint64_t i = 0; i < block_count; i++) {
    lane->tally.frees += lane->blocks[i] != NULL;
    free(lane->blocks[i]);
    lane->blocks[i] = NULL;
  }
}

static void *live(void *argument) {
  struct lane *lane = argument;
  free_all(lane);
  for (uint64_t i = 0; i < block_count; i++) {
    size_t size = rng_between(&lane->rng, min_size, max_size);
    lane->blocks[i] = block_new(size);
    touch_ends(lane->blocks[i], size);
  }
  for (uint64_t i = 0; i < block_count; i += 2) {
    free(lane->blocks[i]);
    lane->blocks[i] = NULL;
  }
  lane->tally.ops++;
  lane->tally.mallocs += block_count;
  lane->tally.frees += (block_count + 1) / 2;
  return NULL;
}

static void run(struct lane *lanes) {
  measure_start(seconds);
  for (uint64_t i = 0; i < lane_count; i++) {
    lanes[i].thread = thread_start(live, &lanes[i]);
  }
  for (uint64_t i = 0; !measure_expired(); i = (i + 1) % lane_count) {
    pthread_join(lanes[i].thread, NULL);
    lanes[i].thread = thread_start(live, &lanes[i]);
  }
  for (uint64_t i = 0; i < lane_count; i++) {
    pthread_join(lanes[i].thread, NULL);
  }
  measure_stop();
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  struct lane *lanes = own_pages(lane_count * sizeof *lanes);
  struct tally sum = {0};
  for (uint64_t i = 0; i < lane_count; i++) {
    lanes[i].blocks = own_pages(block_count * sizeof *lanes[i].blocks);
    lanes[i].rng = rng_seed(i);
  }
  run(lanes);
  for (uint64_t i = 0; i < lane_count; i++) {
    free_all(&lanes[i]);
    tally_add(&sum, &lanes[i].tally);
  }
  measure_report(usage.program, &sum, "lanes=%llu blocks=%llu min=%llu max=%llu",
                 (unsigned long long)lane_count, (unsigned long long)block_count,
                 (unsigned long long)min_size, (unsigned long long)max_size);
  return 0;
}
