/* SPDX-License-Identifier: MIT
 *
 * worst_call: how long the longest single call of malloc or free takes while much memory becomes old.
 * Fills up with blocks of 33 to 48 KiB, frees every fourth, and after a quarter of the time every fourth
 * again, so that the free memory has two ages and lies between live blocks.  Meanwhile requests come every
 * millisecond, each of which allocates, writes and frees some buffers of 16 bytes to 256 KiB.  With
 * `--freed-by other` the requests are another thread's than the frees.
 * One operation is one call; ns_per_op is the mean processor time of the timed calls.
 *
 *   --blocks N (100000)  --freed-by own|other (own)  --buffers N (50, a request)  --seconds S (3)
 *
 * worst_cpu_ns, worst_wall_ns: processor time and wall time of the longest call in any thread, from the
 * first free on; page faults within the calls count.  young_faults: page faults of the requests for each
 * buffer: their memory was freed a moment ago, so that an allocator that knows its age has kept it.
 */
#include "args.h"
#include "calls.h"
#include "team.h"

#include <stdbool.h>
#include <sys/resource.h>

enum { MIN_SIZE = 33 << 10, MAX_SIZE = 48 << 10, MIN_BUFFER = 16, MAX_BUFFER = 256 << 10 };
enum { FREED_BY_OWN, FREED_BY_OTHER };
static const char *const freed_by_names[] = {"own", "other", NULL};

static size_t freed_by;
static uint64_t block_count = 100000, buffer_count = 50;
static double seconds = 3.0;

static const struct arg args[] = {
    ARG_COUNT("blocks", block_count, 4, 1 << 24, "blocks, of which half are freed"),
    ARG_CHOICE("freed-by", freed_by, freed_by_names, "which thread frees: that of the requests"),
    ARG_COUNT("buffers", buffer_count, 1, 1 << 16, "buffers of a request"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"worst_call",
                                   "Times single calls while free memory of two ages becomes old.",
                                   args, sizeof args / sizeof args[0]};

struct thread_figures {
  alignas(128) struct calls calls;
  uint64_t buffers, buffer_faults;
};

static struct thread_figures *figures; /* one for each thread */
static unsigned char **blocks;

static void fill(struct rng *rng) {
  for (uint64_t i = 0; i < block_count; i++) {
    blocks[i] = block_new(rng_between(rng, MIN_SIZE, MAX_SIZE));
    blocks[i][0] = 1;
  }
}

static void free_every_fourth(uint64_t first, struct calls *calls) {
  for (uint64_t i = first; i < block_count; i += 4) {
    timed_free(calls, blocks[i]);
    blocks[i] = NULL;
  }
}

static uint64_t faults_now(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return (uint64_t)usage.ru_minflt;
}

static void serve_request(struct rng *rng, unsigned char **buffers, struct thread_figures *thread) {
  uint64_t faults = faults_now();
  for (uint64_t i = 0; i < buffer_count; i++) {
    size_t size = rng_log_between(rng, MIN_BUFFER, MAX_BUFFER);
    buffers[i] = timed_malloc(&thread->calls, size);
    touch_pages(buffers[i], size);
  }
  for (uint64_t i = 0; i < buffer_count; i++) {
    timed_free(&thread->calls, buffers[i]);
  }
  thread->buffers += buffer_count;
  thread->buffer_faults += faults_now() - faults;
}

static void work(struct worker *worker) {
  struct thread_figures *thread = &figures[worker->index];
  unsigned char **buffers = own_pages(buffer_count * sizeof *buffers);
  bool frees = worker->index == 0;
  bool serves = worker->index == freed_by; /* the only thread, or the second */
  uint64_t second_age_ns;

  if (frees) {
    fill(&worker->rng);
  }
  team_begin(worker);
  second_age_ns = ticks_monotonic_ns() + (uint64_t)(seconds / 4 * 1e9);
  if (frees) {
    free_every_fourth(0, &thread->calls);
  }
  do {
    if (frees && blocks[2] != NULL && ticks_monotonic_ns() >= second_age_ns) {
      free_every_fourth(2, &thread->calls);
    }
    if (serves) {
      serve_request(&worker->rng, buffers, thread);
    }
    sleep_ms(1);
  } while (!measure_expired());
  team_end(worker);
  for (uint64_t i = 0; frees && i < block_count; i++) {
    free(blocks[i]);
  }
  worker->tally.mallocs = thread->buffers + (frees ? block_count : 0);
  worker->tally.frees = worker->tally.mallocs;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  uint64_t threads = freed_by == FREED_BY_OTHER ? 2 : 1;
  figures = own_pages(threads * sizeof *figures);
  blocks = own_pages(block_count * sizeof *blocks);
  struct tally tally = team_run(threads, seconds, work);
  const struct thread_figures *served = &figures[threads - 1];
  struct calls all = figures[0].calls;
  if (threads > 1) {
    calls_merge(&all, &served->calls);
  }
  tally.ops = all.count;
  tally.busy_ns = all.cpu_ns;
  measure_report(usage.program, &tally,
                 "blocks=%llu freed_by=%s worst_cpu_ns=%llu worst_wall_ns=%llu young_faults=%.3f",
                 (unsigned long long)block_count, freed_by_names[freed_by],
                 (unsigned long long)all.worst_cpu_ns, (unsigned long long)all.worst_wall_ns,
                 (double)served->buffer_faults / (double)served->buffers);
  return 0;
}
