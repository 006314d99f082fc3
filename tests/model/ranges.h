/* ranges.h: the common parts of scenarios of ranges: counters and a row of takings for each thread,
 * and the laws of the arenas. */
#ifndef MODEL_RANGES_H
#define MODEL_RANGES_H

#include "map/metadata.h"
#include "model.h"
#include "ranges/arena.h"
#include "ranges/range.h"

static struct counters strays[MODEL_THREADS_MAX];
/* The ranges that each thread took: a row for each, so that two who have the same range show as a
 * race. */
static size_t taken[MODEL_THREADS_MAX];

static inline struct counters *mine(void) { return &strays[model_self() < 0 ? 0 : model_self()]; }

static inline void ranges_set_up(void) {
  MODEL_REQUIRE(window_init(UINT64_C(64) << 20) && metadata_allocate(1));
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++) taken[thread] = NO_GRANULE;
}

/* A live range of untouched memory. */
static inline size_t take_fresh(size_t granules) {
  struct range_request request = {granules, 1, 0, 0};
  size_t granule = range_take_fresh(&request, mine());
  MODEL_REQUIRE(granule != NO_GRANULE && range_info(granule)->granules == granules);
  return granule;
}

static inline uint64_t dirty_granules(void) {
  struct range_sizes sizes;
  range_measure(&sizes);
  return sizes.dirty_bytes >> GRANULE_SHIFT;
}

/* No thread is at work any more. */
static inline void require_laws(void) {
  for (struct arena *arena = arenas; arena < arenas + ARENA_COUNT; arena++)
    MODEL_REQUIRE(arena_is_valid(arena, EVERY_RANGE));
}

static const struct model_mutant lock_mutants[] = {
    {"the lock in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"the lock without release", {{"word_give", "cas", "word", MODEL_WEAKEN, 0}}}};

#endif
