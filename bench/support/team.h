/* SPDX-License-Identifier: MIT
 *
 * team.h: the same body on 1..n threads, measured from the moment all are ready.
 *
 *   body(worker):  fill the working set          (warm-up, not measured)
 *                  team_begin(worker)            all wait, the clock starts
 *                  loop until measure_expired()
 *                  team_end(worker)              the last one in stops the clock, all wait
 *                  free the working set          (not measured)
 *
 * A team of one runs in the main thread and starts none: a single-threaded program must be measured
 * as one (glibc's malloc, for example, is faster before the first thread).
 */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include "measure.h"
#include "rng.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>

struct team;

/* A cache line and more of its own for each worker: the tally is written by one thread only. */
struct worker {
  alignas(128) struct team *team;
  uint64_t index; /* 0 .. threads - 1 */
  struct rng rng; /* differs by index */
  struct tally tally;
  pthread_t thread;
};

struct tally team_run(uint64_t threads, double seconds, void (*body)(struct worker *));
void team_begin(struct worker *worker);
void team_end(struct worker *worker);

/* For programs that run their threads in their own way; ends the program when no thread can be
 * made. */
pthread_t thread_start(void *(*routine)(void *), void *argument);

#endif
