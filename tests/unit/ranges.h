/* ranges.h: ranges in a window of their own, for tests of them and of the caches over them. */
#ifndef RANGES_H
#define RANGES_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "child.h"
#include "fake/os_fake.h"
#include "map/metadata.h"
#include "map/window.h"
#include "ranges/range.h"
#include "ranges/range_cache.h"

/* The class of the ranges in tests of the caches, and its size. */
enum { CLASS = SLAB_CLASS_COUNT, GRANULES = 2 };

static struct counters counters;

/* The first metadata at once, or they would lie between ranges. */
static inline void set_up(void) {
  REQUIRE(window_init(UINT64_C(64) << 30) && metadata_allocate(1));
}
BEFORE(child) { set_up(); }

/* Used memory first, as the tiers above do. */
static inline size_t take_from(size_t granules, size_t alignment_granules, unsigned home) {
  struct range_request request = {granules, alignment_granules, home, 0};
  return range_take(&request, &counters);
}
static inline size_t take(size_t granules) { return take_from(granules, 1, 0); }

static inline void give(size_t granule) {
  range_give(granule, (uint32_t)os_now_coarse_ms(), &counters);
}

static inline unsigned char *bytes_of(size_t granule) {
  return (unsigned char *)granule_address(granule);
}

/* A range of fresh memory, as of now, that was asked for at site. */
static inline size_t fresh_of(size_t granules, uint32_t site) {
  size_t granule = range_take_fresh(&(struct range_request){granules, 1, 0, 0}, &counters);
  REQUIRE(granule != NO_GRANULE);
  range_info(granule)->stamp_ms = (uint32_t)os_now_coarse_ms();
  range_info(granule)->site = site;
  return granule;
}
static inline size_t fresh(uint32_t site) { return fresh_of(GRANULES, site); }

/* From the cache of all threads. */
static inline size_t take_cached(unsigned class, uint32_t site) {
  size_t granule;
  const struct range_wish wish = {.class = class, .site = site};
  return range_cache_take(&wish, &granule, 1, &counters) ? granule : NO_GRANULE;
}

static inline struct range_sizes measure(void) {
  struct range_sizes sizes;
  range_measure(&sizes);
  return sizes;
}
static inline uint64_t dirty_granules(void) { return measure().dirty_bytes >> GRANULE_SHIFT; }

static inline void require_laws(void) {
  for (struct arena *arena = arenas; arena < arenas + ARENA_COUNT; arena++)
    REQUIRE(arena_is_valid(arena, EVERY_RANGE));
}

/* ---- for random runs ------------------------------------------------------------------------- */

struct live {
  size_t granule, granules;
  unsigned char mark; /* in some of its bytes: overlaps and lost content show */
};

static inline struct live take_live(size_t granules, size_t alignment_granules, unsigned home) {
  struct live live = {.granule = take_from(granules, alignment_granules, home),
                      .granules = granules};
  REQUIRE(live.granule != NO_GRANULE);
  REQUIRE(granule_address(live.granule) % (alignment_granules * GRANULE_BYTES) == 0);
  return live;
}

/* ---- a thread that a fork cuts off ----------------------------------------------------------- */

static sem_t is_cut_off;

static inline void stop_here(int signal_number) {
  (void)signal_number;
  sem_post(&is_cut_off);
  for (;;) pause();
}

static inline void protect_record(size_t granule, int protection) {
  uintptr_t record = (uintptr_t)range_info(granule), page_bytes = os_page_bytes();
  REQUIRE(mprotect((void *)(record - record % page_bytes), page_bytes, protection) == 0);
}

/* It stays where it comes to the record in the body. */
static inline void cut_off_at(size_t granule, int protection, void *(*body)(void *),
                              void *argument) {
  pthread_t thread;
  REQUIRE(sem_init(&is_cut_off, 0, 0) == 0 && signal(SIGSEGV, stop_here) != SIG_ERR);
  protect_record(granule, protection);
  REQUIRE(pthread_create(&thread, NULL, body, argument) == 0);
  REQUIRE(sem_wait(&is_cut_off) == 0);
}

#endif
