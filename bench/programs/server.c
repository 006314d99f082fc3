/* SPDX-License-Identifier: MIT
 *
 * server: requests on several threads.  A request allocates some sixty blocks of mixed sizes and frees
 * them at its end, but for one in a hundred, which goes into a table of sessions that all threads
 * share and is freed by whichever thread later needs its place.
 * One operation is one request.
 *
 *   --threads N (4)  --blocks N (60, per request)  --min BYTES (16)  --max BYTES (16K, every doubling
 *   as likely as the next)  --sessions N (2048)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <stdatomic.h>

enum { MOST_BLOCKS = 4096, STAYS_ONE_IN = 100 };

static uint64_t threads = 4, block_count = 60, min_size = 16, max_size = 16 << 10;
static uint64_t session_count = 2048;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads that serve requests"),
    ARG_COUNT("blocks", block_count, 1, MOST_BLOCKS, "blocks of a request"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("sessions", session_count, 1, 1 << 24, "blocks that outlive their request"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"server", "Threads serve requests of some sixty blocks each.",
                                   args, sizeof args / sizeof args[0]};

static _Atomic(unsigned char *) *sessions; /* NULL: no session yet */

static void into_session(unsigned char *block, struct worker *worker) {
  uint64_t session = rng_below(&worker->rng, session_count);
  unsigned char *old = atomic_exchange_explicit(&sessions[session], block, memory_order_acq_rel);
  if (old != NULL && old[0] != 1) {
    give_up("a block lost its content");
  }
  free(old);
  worker->tally.frees += old != NULL;
}

static void serve(struct worker *worker) {
  unsigned char *blocks[MOST_BLOCKS];
  for (uint64_t i = 0; i < block_count; i++) {
    size_t size = rng_log_between(&worker->rng, min_size, max_size);
    blocks[i] = block_new(size);
    touch_ends(blocks[i], size);
  }
  for (uint64_t i = 0; i < block_count; i++) {
    if (rng_below(&worker->rng, STAYS_ONE_IN) == 0) {
      into_session(blocks[i], worker);
    } else {
      free(blocks[i]);
      worker->tally.frees++;
    }
  }
  worker->tally.mallocs += block_count;
}

/* Before the clock starts the threads serve until most sessions have been taken. */
static void work(struct worker *worker) {
  uint64_t first = 4 * STAYS_ONE_IN * session_count / block_count / threads + 1;
  for (uint64_t i = 0; i < first; i++) {
    serve(worker);
  }
  team_begin(worker);
  do {
    serve(worker);
    worker->tally.ops++;
  } while (!measure_expired());
  team_end(worker);
}

static void end_sessions(struct tally *tally) {
  for (uint64_t i = 0; i < session_count; i++) {
    tally->frees += sessions[i] != NULL;
    free(sessions[i]);
  }
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  sessions = own_pages(session_count * sizeof *sessions);
  struct tally tally = team_run(threads, seconds, work);
  end_sessions(&tally);
  measure_report(usage.program, &tally, "threads=%llu blocks=%llu min=%llu max=%llu sessions=%llu",
                 (unsigned long long)threads, (unsigned long long)block_count,
                 (unsigned long long)min_size, (unsigned long long)max_size,
                 (unsigned long long)session_count);
  return 0;
}
