/* SPDX-License-Identifier: MIT
 *
 * fork_heavy: a process with a large heap that forks again and again, as servers that fork for each
 * request or each snapshot.  A child allocates and frees blocks and ends by _exit; the parent waits
 * for it.  Measures what fork handlers cost, and how much of the heap a child's blocks make the
 * kernel copy.
 * One operation is one fork with the child's life.
 *
 *   --heap BYTES (20M)  --blocks N (1000, per child)  --min BYTES (16)  --max BYTES (1K, small ones
 *   more often)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "measure.h"
#include "rng.h"

#include <sys/wait.h>

static uint64_t heap_bytes = 20 << 20, block_count = 1000, min_size = 16, max_size = 1 << 10;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("heap", heap_bytes, 0, UINT64_C(1) << 34, "bytes that are live in the parent"),
    ARG_COUNT("blocks", block_count, 0, 1 << 20, "blocks that a child allocates and frees"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"fork_heavy", "Forks a process with a large heap.", args,
                                   sizeof args / sizeof args[0]};

static unsigned char *new_block(struct rng *rng, uint64_t *size) {
  *size = rng_steep_between(rng, min_size, max_size);
  unsigned char *block = block_new(*size);
  touch_ends(block, *size);
  return block;
}

static _Noreturn void be_child(unsigned char **blocks, struct rng *rng) {
  uint64_t size;
  for (uint64_t i = 0; i < block_count; i++) {
    blocks[i] = new_block(rng, &size);
  }
  for (uint64_t i = 0; i < block_count; i++) {
    free(blocks[i]);
  }
  _exit(0);
}

static void fork_once(unsigned char **blocks, struct rng *rng) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    be_child(blocks, rng);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    give_up("a child did not start or did not end well");
  }
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  unsigned char **heap = own_pages((heap_bytes / min_size + 1) * sizeof *heap);
  unsigned char **blocks = own_pages((block_count + 1) * sizeof *blocks);
  struct rng rng = rng_seed(0);
  struct tally tally = {0};
  uint64_t size;

  for (uint64_t bytes = 0; bytes < heap_bytes; bytes += size) {
    heap[tally.mallocs++] = new_block(&rng, &size);
  }
  measure_start(seconds);
  do {
    fork_once(blocks, &rng);
    tally.ops++;
  } while (!measure_expired());
  measure_stop();
  while (tally.frees < tally.mallocs) {
    free(heap[tally.frees++]);
  }
  measure_report(usage.program, &tally, "heap=%llu blocks=%llu min=%llu max=%llu",
                 (unsigned long long)heap_bytes, (unsigned long long)block_count,
                 (unsigned long long)min_size, (unsigned long long)max_size);
  return 0;
}
