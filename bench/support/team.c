/* SPDX-License-Identifier: MIT
 *
 * team.c: see team.h.
 */
#include "team.h"

#include "blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct team {
  pthread_barrier_t barrier;
  double seconds;
  uint64_t threads;
  void (*body)(struct worker *);
};

pthread_t thread_start(void *(*routine)(void *), void *argument) {
  pthread_t thread;
  int error = pthread_create(&thread, NULL, routine, argument);
  if (error != 0) {
    fprintf(stderr, "benchmark: no thread: %s\n", strerror(error));
    _exit(1);
  }
  return thread;
}

void team_begin(struct worker *worker) {
  struct team *team = worker->team;
  if (pthread_barrier_wait(&team->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
    measure_start(team->seconds);
  }
  pthread_barrier_wait(&team->barrier); /* no thread runs before the clock does */
}

void team_end(struct worker *worker) {
  struct team *team = worker->team;
  if (pthread_barrier_wait(&team->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
    measure_stop();
  }
  pthread_barrier_wait(&team->barrier); /* no thread tears down while the counters are read */
}

static void *run_worker(void *argument) {
  struct worker *worker = argument;
  worker->team->body(worker);
  return NULL;
}

static void run_threads(struct team *team, struct worker *workers) {
  for (uint64_t i = 0; i < team->threads; i++) {
    workers[i].thread = thread_start(run_worker, &workers[i]);
  }
  for (uint64_t i = 0; i < team->threads; i++) {
    pthread_join(workers[i].thread, NULL);
  }
}

struct tally team_run(uint64_t threads, double seconds, void (*body)(struct worker *)) {
  struct team team = {.seconds = seconds, .threads = threads, .body = body};
  struct worker *workers = own_pages(threads * sizeof *workers);
  struct tally sum = {0};

  pthread_barrier_init(&team.barrier, NULL, (unsigned)threads);
  for (uint64_t i = 0; i < threads; i++) {
    workers[i] = (struct worker){.team = &team, .index = i, .rng = rng_seed(i)};
  }
  if (threads == 1) {
    body(&workers[0]);
  } else {
    run_threads(&team, workers);
  }
  for (uint64_t i = 0; i < threads; i++) {
    tally_add(&sum, &workers[i].tally);
  }
  pthread_barrier_destroy(&team.barrier);
  return sum;
}
