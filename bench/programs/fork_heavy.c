/* SPDX-License-Identifier: MIT
 *
 * fork_heavy: a process with a large heap that forks again and again, as servers that fork for each
 * request or each snapshot.  A child allocates and frees blocks and ends by _exit; the parent waits
 * for it.  Measures what fork handlers cost, and how much of the heap a child's blocks make the
 * kernel copy.
 * One operation is one fork with the child's life.
 *
 *   --threads N (0: threads of the parent that have allocated a little and sleep)
 *   --child MS (0: time for which a child allocates and frees them again and again)
 *   --heap BYTES (20M)  --blocks N (1000, per child)  --min BYTES (16)  --max BYTES (1K, small ones
 *   more often)  --seconds S (1)
 *
 * worst_cpu_ns: with --child, the processor time of the longest single call in any child.
 */
#include "args.h"
#include "calls.h"
#include "measure.h"
#include "rng.h"
#include "sleepers.h"

#include <sys/wait.h>

static uint64_t heap_bytes = 20 << 20, block_count = 1000, min_size = 16, max_size = 1 << 10;
static uint64_t threads, child_ms;
static double seconds = 1.0;
static struct calls *child_calls; /* of all children: shared with them */

static const struct arg args[] = {
    ARG_COUNT("heap", heap_bytes, 0, UINT64_C(1) << 34, "bytes that are live in the parent"),
    ARG_COUNT("blocks", block_count, 0, 1 << 20, "blocks that a child allocates and frees"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("threads", threads, 0, ARGS_THREADS_MAX, "threads of the parent that sleep"),
    ARG_COUNT("child", child_ms, 0, 60000, "milliseconds of a child's life"),
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

/* Requests, each call timed, so that the allocator's work by time has its turn in the child. */
static void live_on(unsigned char **blocks, struct rng *rng) {
  uint64_t end_ns = ticks_monotonic_ns() + child_ms * 1000000;
  do {
    for (uint64_t i = 0; i < block_count; i++) {
      blocks[i] = timed_malloc(child_calls, rng_log_between(rng, min_size, max_size));
      blocks[i][0] = 1;
    }
    for (uint64_t i = 0; i < block_count; i++) {
      timed_free(child_calls, blocks[i]);
    }
    sleep_ms(1);
  } while (ticks_monotonic_ns() < end_ns);
}

static _Noreturn void be_child(unsigned char **blocks, struct rng *rng) {
  uint64_t size;
  if (child_ms != 0) {
    live_on(blocks, rng);
    _exit(0);
  }
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

  child_calls =
      mmap(NULL, sizeof *child_calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (child_calls == MAP_FAILED) {
    out_of_memory(sizeof *child_calls);
  }
  sleepers_start(threads);
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
  if (child_ms == 0) {
    measure_report(usage.program, &tally, "heap=%llu blocks=%llu min=%llu max=%llu",
                   (unsigned long long)heap_bytes, (unsigned long long)block_count,
                   (unsigned long long)min_size, (unsigned long long)max_size);
  } else {
    measure_report(usage.program, &tally, "heap=%llu blocks=%llu threads=%llu worst_cpu_ns=%llu",
                   (unsigned long long)heap_bytes, (unsigned long long)block_count,
                   (unsigned long long)threads, (unsigned long long)child_calls->worst_cpu_ns);
  }
  return 0;
}
