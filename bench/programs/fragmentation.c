/* SPDX-License-Identifier: MIT
 *
 * fragmentation: a long random load that leaves holes.  Sizes and lives both follow power laws: most
 * blocks are small and some are large, most die soon and some stay.  Each operation replaces one of
 * an array of live blocks, and chooses number x of them with a chance that falls as 1/x: the first
 * is replaced all the time, the last after millions of operations.  A fixed amount of work, so that
 * memory compares.
 * One operation is one free and one malloc.
 *
 *   --slots BLOCKS (256K)  --min BYTES (8)  --max BYTES (64K)  --ops N (8M)
 *
 * live_bytes: bytes asked for and not freed at the end.  rss_over_live: the resident memory at the
 * end, less that before the first block, over these.
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

static uint64_t slot_count = 256 << 10, min_size = 8, max_size = 64 << 10, ops = 8 << 20;

static const struct arg args[] = {
    ARG_COUNT("slots", slot_count, 2, 1 << 28, "live blocks"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("ops", ops, 1, UINT64_MAX / 2, "replacements"),
};

static const struct usage usage = {"fragmentation",
                                   "Replaces blocks whose sizes and lives follow power laws.", args,
                                   sizeof args / sizeof args[0]};

struct slot {
  unsigned char *block;
  uint64_t size;
};

static long first_rss_kib;
static uint64_t live_bytes;

static void fill_slot(struct slot *slot, struct rng *rng) {
  slot->size = rng_steep_between(rng, min_size, max_size);
  slot->block = block_new(slot->size);
  touch_pages(slot->block, slot->size);
  touch_ends(slot->block, slot->size);
}

static uint64_t sum_of_sizes(const struct slot *slots) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < slot_count; i++) {
    sum += slots[i].size;
  }
  return sum;
}

static void work(struct worker *worker) {
  struct slot *slots = own_pages(slot_count * sizeof *slots);
  struct rng rng = worker->rng;

  touch_pages((unsigned char *)slots, slot_count * sizeof *slots);
  first_rss_kib = measure_status_kib("VmRSS");
  for (uint64_t i = 0; i < slot_count; i++) {
    fill_slot(&slots[i], &rng);
  }
  team_begin(worker);
  for (uint64_t i = 0; i < ops; i++) {
    struct slot *slot = &slots[rng_log_between(&rng, 1, slot_count) - 1];
    free(slot->block);
    fill_slot(slot, &rng);
  }
  team_end(worker);
  live_bytes = sum_of_sizes(slots);
  for (uint64_t i = 0; i < slot_count; i++) {
    free(slots[i].block);
  }
  worker->tally.ops = ops;
  worker->tally.mallocs = worker->tally.frees = slot_count + ops;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  struct tally tally = team_run(1, 1.0, work);
  double grown = 1024.0 * (double)(measure_stop_rss_kib() - first_rss_kib);
  measure_report(
      usage.program, &tally, "slots=%llu min=%llu max=%llu live_bytes=%llu rss_over_live=%.3f",
      (unsigned long long)slot_count, (unsigned long long)min_size, (unsigned long long)max_size,
      (unsigned long long)live_bytes, grown / (double)live_bytes);
  return 0;
}
