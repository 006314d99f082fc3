/* SPDX-License-Identifier: MIT
 *
 * scenarios: buffers that programs take, use and give back: a parsed document (json, 64 KiB), a
 * compiler's intermediate form (mir, 256 KiB), a guest's memory (vm, 2 MiB), and a mix of the three
 * (mixed: six, three and one in ten).  A few blocks are live; the oldest is freed, a new one takes
 * its place and is touched.  Page faults per operation tell how much memory really was reused.
 * One operation is one free and one malloc with its writes.
 *
 *   --scenario json|mir|vm|mixed (json)  --size BYTES (instead of the scenario's)
 *   --live BLOCKS (8)  --touch page|whole|none (page)  --threads N (1)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <string.h>

enum { SCENARIO_MIXED = 3 };
static const char *const scenario_names[] = {"json", "mir", "vm", "mixed", NULL};
static const size_t scenario_sizes[] = {64 << 10, 256 << 10, 2 << 20};

static void touch_whole(unsigned char *block, size_t bytes) { memset(block, 1, bytes); }

static const char *const touch_names[] = {"page", "whole", "none", NULL};
static void (*const touches[])(unsigned char *, size_t) = {touch_pages, touch_whole, NULL};

static size_t scenario, touch;
static uint64_t size, live = 8, threads = 1;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_CHOICE("scenario", scenario, scenario_names, "which sizes"),
    ARG_COUNT("size", size, 0, ARGS_SIZE_MAX, "bytes of every block, 0: the scenario's"),
    ARG_COUNT("live", live, 1, 1 << 20, "blocks in use at a time"),
    ARG_CHOICE("touch", touch, touch_names, "one byte a page, every byte, or nothing"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own blocks"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"scenarios", "Allocates, touches and frees buffers in rotation.",
                                   args, sizeof args / sizeof args[0]};

static size_t next_size(struct rng *rng) {
  if (size != 0) {
    return size;
  }
  if (scenario != SCENARIO_MIXED) {
    return scenario_sizes[scenario];
  }
  uint64_t tenth = rng_below(rng, 10);
  return scenario_sizes[tenth < 6 ? 0 : tenth < 9 ? 1 : 2];
}

/* One lap: every live block is replaced once, the oldest first. */
static void one_lap(unsigned char **blocks, struct rng *rng) {
  for (uint64_t i = 0; i < live; i++) {
    size_t bytes = next_size(rng);
    free(blocks[i]);
    blocks[i] = block_new(bytes);
    if (touches[touch] != NULL) {
      touches[touch](blocks[i], bytes);
    }
  }
}

static void work(struct worker *worker) {
  enum { WARM_UP_LAPS = 8, LAPS_BETWEEN_CLOCKS = 16 };
  unsigned char **blocks = own_pages(live * sizeof *blocks);
  uint64_t laps = 0;

  for (int i = 0; i < WARM_UP_LAPS; i++) {
    one_lap(blocks, &worker->rng);
  }
  team_begin(worker);
  do {
    for (int i = 0; i < LAPS_BETWEEN_CLOCKS; i++) {
      one_lap(blocks, &worker->rng);
    }
    laps += LAPS_BETWEEN_CLOCKS;
  } while (!measure_expired());
  team_end(worker);
  for (uint64_t i = 0; i < live; i++) { /* stands for the first lap, which freed NULL */
    free(blocks[i]);
  }
  worker->tally.ops = laps * live;
  worker->tally.mallocs = worker->tally.frees = (laps + WARM_UP_LAPS) * live;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  struct tally tally = team_run(threads, seconds, work);
  measure_report(usage.program, &tally, "scenario=%s threads=%llu size=%llu live=%llu touch=%s",
                 scenario_names[scenario], (unsigned long long)threads, (unsigned long long)size,
                 (unsigned long long)live, touch_names[touch]);
  return 0;
}
