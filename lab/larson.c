/* SPDX-License-Identifier: MIT
 *
 * larson.c: one load for all experiments: threads replace random blocks of 2 to 32 KiB in arrays that
 * wander from thread to thread.
 *
 * A thread replaces `rounds` times as many blocks as its array has, then hands the array over and takes
 * the one that another thread has left; most of what it frees next is another thread's.  After
 * `handovers` of these it hands its array to a NEW thread and ends, as in the benchmark of Larson and
 * Krishnan; the end overlaps the successor's start.  A single thread has no other to exchange
 * with: its array changes hands at the end of a thread only.
 *
 * One operation is one free and one malloc.  Each request is the same for every strategy, as far as
 * threads do not overtake each other: sizes and slots come from a seed per thread.
 *
 * With --check 1 a block is filled with a pattern that follows from its address and its size, and
 * compared when it is freed.  In all runs every block must be back at the end: those that wait in lists
 * are counted against those that the pages have.
 */
#include "args.h"
#include "core/pages.h"
#include "measure.h"
#include "rng.h"
#include "strategies/all.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS_BETWEEN_CLOCKS = 100, STRATEGIES_MAX = 32 };

static const char *names[STRATEGIES_MAX];
static size_t chosen;
static uint64_t threads = 1, blocks = 1000, rounds = 1, handovers = 32;
static uint64_t min_size = 2 << 10, max_size = BLOCK_SIZE_MAX, limit_mib = 4096, check;
static double seconds = 1.0;
static uint64_t warmup_ms = 100;

static const struct arg args[] = {
    ARG_CHOICE("strategy", chosen, names, "the experiment"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads alive at a time"),
    ARG_COUNT("blocks", blocks, 1, 1 << 20, "live blocks of an array"),
    ARG_COUNT("rounds", rounds, 1, 1 << 30, "replacements between hand-overs, per block"),
    ARG_COUNT("handovers", handovers, 1, 1 << 30, "hand-overs in a thread's life"),
    ARG_COUNT("min", min_size, 1, BLOCK_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, BLOCK_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("limit", limit_mib, 1, 1 << 18, "MiB of pages after which a run ends early"),
    ARG_COUNT("check", check, 0, 1, "1: write and compare the contents of all blocks"),
    ARG_COUNT("warmup", warmup_ms, 0, 60000, "milliseconds of the same load before"),
    ARG_SECONDS(seconds),
};

static struct usage usage = {"lab", "Runs one experiment of the laboratory.", args,
                             sizeof args / sizeof args[0]};

/* An array of blocks, with the sizes that were asked for. */
struct slot {
  unsigned char *block;
  size_t size;
};

struct array {
  struct slot *slots;
};

/* The line of threads that follow each other. */
struct lineage {
  alignas(2 * CACHE_LINE) struct array *array;
  struct rng rng;
  uint64_t ops;
  pthread_t newest;
  bool has_predecessor;
};

static const struct strategy *strategy;
static struct array *_Atomic left_array; /* left by the last thread that exchanged */
static sem_t finished_lineages;
static _Atomic bool is_over; /* the time is, or the pages are */
static _Atomic bool is_out_of_pages;

static pthread_mutex_t totals_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct counters totals;
static uint64_t takes, gives;

/* The word that stands at `index` of a block with a pattern. */
static uint64_t pattern(const unsigned char *block, size_t size, size_t index) {
  return ((uint64_t)(uintptr_t)block ^ size << 48 ^ index) * 0x9E3779B97F4A7C15u;
}

static void fill(unsigned char *block, size_t size) {
  for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
    uint64_t word = pattern(block, size, i);
    memcpy(block + i * sizeof word, &word, sizeof word);
  }
}

static void compare(const unsigned char *block, size_t size) {
  for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
    uint64_t expected = pattern(block, size, i), word;
    memcpy(&word, block + i * sizeof word, sizeof word);
    if (word != expected) {
      fprintf(stderr, "lab: %s: a block of %zu bytes was overwritten at byte %zu\n", strategy->name,
              size, i * sizeof word);
      abort();
    }
  }
}

/* Puts a new block into the slot; an empty one when the pages are used up. */
static void slot_fill(struct slot *slot, struct rng *rng, void *state) {
  slot->size = rng_between(rng, min_size, max_size);
  slot->block = strategy->take(state, slot->size);
  if (slot->block == NULL) {
    atomic_store(&is_out_of_pages, true);
    atomic_store(&is_over, true);
    return;
  }
  slot->block[0] = 1;
  slot->block[slot->size - 1] = 1;
  if (check) {
    fill(slot->block, slot->size);
  }
}

static void slot_empty(struct slot *slot, void *state) {
  if (slot->block == NULL) {
    return;
  }
  if (check) {
    compare(slot->block, slot->size);
  }
  strategy->give(state, slot->block);
  slot->block = NULL;
}

static void replace(struct slot *slots, struct rng *rng, void *state, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    struct slot *slot = &slots[rng_below(rng, blocks)];
    slot_empty(slot, state);
    slot_fill(slot, rng, state);
  }
}

/* From one hand-over to the next; returns the operations done. */
static uint64_t work_on(struct array *array, struct rng *rng, void *state) {
  uint64_t done = 0;
  while (done < rounds * blocks && !atomic_load_explicit(&is_over, memory_order_relaxed)) {
    uint64_t left = rounds * blocks - done;
    uint64_t count = left < OPS_BETWEEN_CLOCKS ? left : OPS_BETWEEN_CLOCKS;
    replace(array->slots, rng, state, count);
    done += count;
    if (measure_expired()) {
      atomic_store_explicit(&is_over, true, memory_order_relaxed);
    }
  }
  return done;
}

static void add_up(const struct counters *counters, uint64_t ops) {
  pthread_mutex_lock(&totals_mutex);
  takes += ops;
  gives += ops;
#define COUNTER(name, meaning) totals.name += counters->name;
#include "core/counters.def"
#undef COUNTER
  pthread_mutex_unlock(&totals_mutex);
}

static pthread_t thread_start(void *(*routine)(void *), void *argument) {
  pthread_t thread;
  int error = pthread_create(&thread, NULL, routine, argument);
  if (error != 0) {
    fprintf(stderr, "lab: no thread: %s\n", strerror(error));
    exit(1);
  }
  return thread;
}

/* The successor, or the word that this lineage is at its end. */
static void pass_on(struct lineage *lineage, void *(*live)(void *)) {
  if (lineage->has_predecessor) {
    pthread_join(lineage->newest, NULL);
  }
  lineage->has_predecessor = true;
  lineage->newest = pthread_self();
  if (atomic_load(&is_over)) {
    sem_post(&finished_lineages);
  } else {
    thread_start(live, lineage);
  }
}

static void *live_one_life(void *argument) {
  struct lineage *lineage = argument;
  struct counters counters = {0};
  void *state = strategy->thread_begin(&counters);
  struct array *array = lineage->array;
  uint64_t ops = 0;

  for (uint64_t i = 0; i < handovers && !atomic_load(&is_over); i++) {
    ops += work_on(array, &lineage->rng, state);
    if (threads > 1) {
      array = atomic_exchange(&left_array, array);
    }
  }
  lineage->array = array;
  lineage->ops += ops;
  pass_on(lineage, live_one_life); /* from here on the lineage is the successor's */
  strategy->thread_end(state);
  add_up(&counters, ops);
  return NULL;
}

/* One array more than threads: it lies between those who exchange. */
static struct array *arrays_new(struct rng *rng, void *state) {
  struct array *arrays = records_new((threads + 1) * sizeof *arrays);
  for (uint64_t i = 0; i <= threads; i++) {
    arrays[i].slots = records_new(blocks * sizeof *arrays[i].slots);
    for (uint64_t slot = 0; slot < blocks; slot++) {
      slot_fill(&arrays[i].slots[slot], rng, state);
    }
  }
  return arrays;
}

static void run_lineages(struct lineage *lineages, double duration) {
  measure_start(duration);
  for (uint64_t i = 0; i < threads; i++) {
    thread_start(live_one_life, &lineages[i]);
  }
  for (uint64_t i = 0; i < threads; i++) {
    sem_wait(&finished_lineages);
  }
  measure_stop();
  for (uint64_t i = 0; i < threads; i++) {
    pthread_join(lineages[i].newest, NULL);
    lineages[i].has_predecessor = false;
  }
}

/* The same load, forgotten: pages are made, queues are filled, and threads have ended. */
static void warm_up(struct lineage *lineages) {
  if (warmup_ms == 0) {
    return;
  }
  run_lineages(lineages, 1e-3 * (double)warmup_ms);
  totals = (struct counters){0};
  for (uint64_t i = 0; i < threads; i++) {
    lineages[i].ops = 0;
  }
  atomic_store(&is_over, atomic_load(&is_out_of_pages));
}

static void empty_arrays(struct array *arrays, void *state) {
  for (uint64_t i = 0; i < (threads + 1) * blocks; i++) {
    slot_empty(&arrays[i / blocks].slots[i % blocks], state);
  }
}

/* The law of every strategy: no block is lost, and none is in two lists. */
static void check_all_are_back(void) {
  if (strategy->count_free != NULL && strategy->count_free() != pages_blocks()) {
    fprintf(stderr, "lab: %s: %llu blocks in its lists, but the pages have %llu\n", strategy->name,
            (unsigned long long)strategy->count_free(), (unsigned long long)pages_blocks());
    exit(1);
  }
}

static void report(const struct tally *tally, uint64_t pages_at_start) {
  char text[2048];
  int length =
      snprintf(text, sizeof text,
               "strategy=%s threads=%llu pages_at_start=%llu pages_at_end=%llu "
               "out_of_pages=%d",
               strategy->name, (unsigned long long)threads, (unsigned long long)pages_at_start,
               (unsigned long long)pages_made(), (int)atomic_load(&is_out_of_pages));
#define COUNTER(name, meaning)                                                       \
  length += snprintf(text + length, sizeof text - (size_t)length, " " #name "=%llu", \
                     (unsigned long long)totals.name);
#include "core/counters.def"
#undef COUNTER
  measure_report("lab", tally, "%s", text);
}

static void parse(int argc, char **argv) {
  for (size_t i = 0; strategies[i] != NULL; i++) {
    names[i] = strategies[i]->name;
  }
  args_parse(&usage, argc, argv);
  if (min_size > max_size) {
    args_refuse(&usage, "--min is above --max");
  }
  strategy = strategies[chosen];
}

int main(int argc, char **argv) {
  parse(argc, argv);
  pages_start(limit_mib << 20 >> PAGE_SHIFT);

  /* Counts of set-up and tear-down, which do not belong to the totals. */
  struct counters counters = {0};
  struct rng rng = rng_seed(threads);
  struct lineage *lineages = records_new(threads * sizeof *lineages);
  void *state = strategy->thread_begin(&counters);
  struct array *arrays = arrays_new(&rng, state);
  strategy->thread_end(state); /* the first thread inherits what main has left */
  atomic_store(&left_array, &arrays[threads]);
  sem_init(&finished_lineages, 0, 0);
  for (uint64_t i = 0; i < threads; i++) {
    lineages[i].array = &arrays[i];
    lineages[i].rng = rng_seed(i);
  }

  warm_up(lineages);
  uint64_t pages_at_start = pages_made();
  run_lineages(lineages, seconds);

  struct tally tally = {.mallocs = takes + (threads + 1) * blocks, .frees = gives};
  for (uint64_t i = 0; i < threads; i++) {
    tally.ops += lineages[i].ops;
  }
  report(&tally, pages_at_start);
  state = strategy->thread_begin(&counters);
  empty_arrays(arrays, state);
  strategy->thread_end(state);
  check_all_are_back();
  return 0;
}
