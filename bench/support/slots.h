/* SPDX-License-Identifier: MIT
 *
 * slots.h: the load of several benchmarks: each thread owns an array of live blocks of random sizes
 * and, again and again, frees a random one and puts a new one in its place.
 */
#ifndef BENCH_SLOTS_H
#define BENCH_SLOTS_H

#include "blocks.h"
#include "measure.h"
#include "rng.h"
#include "team.h"

#include <stdbool.h>
#include <stdint.h>

/* A new block, touched.  It gets no pointer to the slots, so that compilers see that `make` is
 * constant and call it directly. */
typedef unsigned char *slots_make(uint64_t min_size, uint64_t max_size, struct rng *rng);

struct slots {
  unsigned char **blocks;
  uint64_t count;
  uint64_t min_size, max_size;
  slots_make *make;
};

/* A block of uniformly random size, its first and last byte written. */
static inline unsigned char *slots_make_small(uint64_t min_size, uint64_t max_size,
                                              struct rng *rng) {
  size_t size = rng_between(rng, min_size, max_size);
  unsigned char *block = block_new(size);
  touch_ends(block, size);
  return block;
}

static inline void slots_fill(struct slots *slots, struct rng *rng, struct tally *tally) {
  slots->blocks = own_pages(slots->count * sizeof *slots->blocks);
  for (uint64_t i = 0; i < slots->count; i++) {
    slots->blocks[i] = slots->make(slots->min_size, slots->max_size, rng);
  }
  tally->mallocs += slots->count;
}

/* `count` replacements; one operation is one free and one malloc. */
static inline void slots_replace(struct slots *slots, struct rng *rng, struct tally *tally,
                                 uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    unsigned char **slot = &slots->blocks[rng_below(rng, slots->count)];
    free(*slot);
    *slot = slots->make(slots->min_size, slots->max_size, rng);
  }
  tally->ops += count;
  tally->mallocs += count;
  tally->frees += count;
}

static inline void slots_empty(struct slots *slots, struct tally *tally) {
  for (uint64_t i = 0; i < slots->count; i++) {
    free(slots->blocks[i]);
  }
  tally->frees += slots->count;
}

/* The whole life of one worker.  Before the clock starts each slot has been replaced about twice,
 * so that caches are as full as they will be.  `ops` 0: until the time is over. */
static inline void slots_work(struct slots *slots, struct worker *worker, uint64_t ops) {
  enum { OPS_BETWEEN_CLOCKS = 128 };
  struct rng rng = worker->rng;
  struct tally tally = {0};

  slots_fill(slots, &rng, &tally);
  slots_replace(slots, &rng, &tally, 2 * slots->count);
  tally.ops = 0;
  team_begin(worker);
  if (ops != 0) {
    slots_replace(slots, &rng, &tally, ops);
  } else {
    do {
      slots_replace(slots, &rng, &tally, OPS_BETWEEN_CLOCKS);
    } while (!measure_expired());
  }
  team_end(worker);
  slots_empty(slots, &tally);
  worker->tally = tally;
}

#endif
