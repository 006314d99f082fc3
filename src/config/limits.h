/* limits.h: the process's memory limits, by option and by its cgroup, and their effect on caches.
 *
 *   HAKMEM_LIMIT_SOFT, HAKMEM_LIMIT_HARD   constant after limits_read; map/commit.h keeps to them
 *   the cgroup's memory limit              as its use comes near, free memory goes back younger
 *   the cgroup's processor quota           less time than processors: smaller caches
 *
 * A process reads its cgroup when it has grown and gives memory back, not at its start
 * (docs/decisions/0019). */
#ifndef HAK_CONFIG_LIMITS_H
#define HAK_CONFIG_LIMITS_H

#include "base/atomic.h"
#include "base/compiler.h"

struct limits {
  uint64_t hard_bytes;         /* 0: none; constant after limits_read */
  ATOMIC(uint64_t) soft_bytes; /* 0: none; without the option, derived from the cgroup */

  /* Derived from the cgroup; 0 before. */
  ATOMIC(uint32_t) decay_cut; /* part of LIMITS_WHOLE taken off the age at which memory goes */
  ATOMIC(uint32_t) cache_cut; /* part of LIMITS_WHOLE taken off the budgets of caches */
  ATOMIC(uint64_t) cache_end_bytes; /* upper bound of every cache; 0: no memory limit */

  ATOMIC(bool) keeps_free; /* the program wants free memory kept at any age (mallopt) */
};
extern struct limits limits;

enum { LIMITS_WHOLE = 256 };
/* Twelve days: ages are differences of 32-bit time stamps. */
enum { LIMITS_DECAY_NEVER_MS = 1 << 30 };

/* Call after options_read; a percentage reads the cgroup's limit. */
void limits_read(void);

/* Reads the cgroup: its limits the first time, its memory use each time. One thread at a time. */
void limits_poll(void);

INLINE uint64_t limits_remaining(uint64_t whole, uint32_t cut) {
  return LIKELY(!cut) ? whole : whole * (LIMITS_WHOLE - cut) / LIMITS_WHOLE;
}
/* A program that wants free memory kept keeps it while its cgroup has room. */
INLINE uint64_t limits_decay_ms(uint64_t whole) {
  uint32_t cut = load_relaxed(&limits.decay_cut);
  if (UNLIKELY(load_relaxed(&limits.keeps_free)) && !cut) return LIMITS_DECAY_NEVER_MS;
  return limits_remaining(whole, cut);
}
INLINE uint64_t limits_at_most(uint64_t cache_bytes) {
  uint64_t end = load_relaxed(&limits.cache_end_bytes);
  return UNLIKELY(end) && cache_bytes > end ? end : cache_bytes;
}
/* A cache's current budget. */
INLINE uint64_t limits_budget(uint64_t whole) {
  return limits_at_most(limits_remaining(whole, load_relaxed(&limits.cache_cut)));
}

#endif
