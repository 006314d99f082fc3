/* SPDX-License-Identifier: MIT
 *
 * many_live: a large live set, as in a database's index or a compiler's tree.  Allocates millions of
 * small blocks, then frees them all in random order, in allocation order or in reverse; no cache of
 * a thread covers that.  A fixed amount of work, so that peaks of memory compare.
 * One operation is one malloc and one free.
 *
 *   --blocks N (1M)  --min BYTES (16)  --max BYTES (128)  --order random|forward|reverse (random)
 *   --rounds N (3)  --threads N (1, each with --blocks blocks)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

enum { ORDER_RANDOM, ORDER_FORWARD, ORDER_REVERSE };
static const char *const order_names[] = {"random", "forward", "reverse", NULL};

static size_t order;
static uint64_t block_count = 1 << 20, min_size = 16, max_size = 128, rounds = 3, threads = 1;

static const struct arg args[] = {
    ARG_COUNT("blocks", block_count, 1, 1 << 30, "live blocks of a thread at the peak"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_CHOICE("order", order, order_names, "the order of the frees"),
    ARG_COUNT("rounds", rounds, 1, 1 << 20, "times that all are allocated and freed"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own blocks"),
};

static const struct usage usage = {"many_live",
                                   "Allocates millions of small blocks, then frees them all.", args,
                                   sizeof args / sizeof args[0]};

/* The random order, made before the clock starts: a permutation of 0 .. block_count - 1. */
static uint32_t *shuffled_indices(struct rng *rng) {
  uint32_t *indices = own_pages(block_count * sizeof *indices);
  for (uint64_t i = 0; i < block_count; i++) {
    uint64_t other = rng_below(rng, i + 1);
    indices[i] = indices[other];
    indices[other] = (uint32_t)i;
  }
  return indices;
}

/* Which block is the i-th to be freed. */
static uint64_t victim(const uint32_t *shuffled, uint64_t i) {
  if (order == ORDER_RANDOM) {
    return shuffled[i];
  }
  return order == ORDER_FORWARD ? i : block_count - 1 - i;
}

static void work(struct worker *worker) {
  struct rng rng = worker->rng;
  unsigned char **blocks = own_pages(block_count * sizeof *blocks);
  const uint32_t *shuffled = order == ORDER_RANDOM ? shuffled_indices(&rng) : NULL;

  touch_pages((unsigned char *)blocks, block_count * sizeof *blocks); /* fault in our own pages */
  team_begin(worker);
  for (uint64_t round = 0; round < rounds; round++) {
    for (uint64_t i = 0; i < block_count; i++) {
      size_t size = rng_between(&rng, min_size, max_size);
      blocks[i] = block_new(size);
      touch_ends(blocks[i], size);
    }
    for (uint64_t i = 0; i < block_count; i++) {
      free(blocks[victim(shuffled, i)]);
    }
  }
  team_end(worker);
  worker->tally.ops = worker->tally.mallocs = worker->tally.frees = rounds * block_count;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  struct tally tally = team_run(threads, 1.0, work);
  measure_report(usage.program, &tally, "blocks=%llu min=%llu max=%llu order=%s",
                 (unsigned long long)block_count, (unsigned long long)min_size,
                 (unsigned long long)max_size, order_names[order]);
  return 0;
}
