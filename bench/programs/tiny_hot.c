/* SPDX-License-Identifier: MIT
 *
 * tiny_hot: the fast path and nothing else.  Allocates a batch of equal small blocks, writes one
 * byte into each, frees the batch in the order of allocation, and starts again.
 * One operation is one malloc and one free.
 *
 *   --size BYTES (64)  --batch BLOCKS (100)  --threads N (1)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

static uint64_t size = 64, batch = 100, threads = 1;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("size", size, 1, ARGS_SIZE_MAX, "bytes of a block"),
    ARG_COUNT("batch", batch, 1, 1 << 24, "blocks allocated, then freed"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own batch"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {
    "tiny_hot", "Allocates a batch of small blocks, frees the batch, again and again.", args,
    sizeof args / sizeof args[0]};

static void one_batch(unsigned char **blocks) {
  for (uint64_t i = 0; i < batch; i++) {
    blocks[i] = block_new(size);
    blocks[i][0] = 1;
  }
  for (uint64_t i = 0; i < batch; i++) {
    free(blocks[i]);
  }
}

static void work(struct worker *worker) {
  enum { WARM_UP_BATCHES = 100, OPS_BETWEEN_CLOCKS = 2000 };
  unsigned char **blocks = own_pages(batch * sizeof *blocks);
  uint64_t batches_between_clocks = OPS_BETWEEN_CLOCKS / batch + 1, batches = 0;

  for (int i = 0; i < WARM_UP_BATCHES; i++) {
    one_batch(blocks);
  }
  team_begin(worker);
  do {
    for (uint64_t i = 0; i < batches_between_clocks; i++) {
      one_batch(blocks);
    }
    batches += batches_between_clocks;
  } while (!measure_expired());
  team_end(worker);
  worker->tally.ops = batches * batch;
  worker->tally.mallocs = worker->tally.frees = (batches + WARM_UP_BATCHES) * batch;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  struct tally tally = team_run(threads, seconds, work);
  measure_report(usage.program, &tally, "threads=%llu size=%llu batch=%llu",
                 (unsigned long long)threads, (unsigned long long)size, (unsigned long long)batch);
  return 0;
}
