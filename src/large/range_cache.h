/* range_cache.h: freed Large ranges, kept whole, found again by class and call site.
 *
 *   shard[home % 64] → row[class] → 8 slots, each one word:   | call site : 32 | first granule + 1 : 32 |
 *
 * A thread's magazines for Large blocks, and everybody's: it takes from and fills its own shard, but a slot is taken and
 * filled by compare-and-swap of its one word, so what a thread that sleeps has freed is found by others and goes back by
 * age in their rounds.  A range in a slot belongs to nobody else.
 *
 *   law: what a shard holds is known by its bit in `nonempty`, which is set after a slot is filled, and cleared before
 *        the shard is emptied */
#ifndef HAK_LARGE_RANGE_CACHE_H
#define HAK_LARGE_RANGE_CACHE_H

#include "pool/range.h"

enum { RANGE_CACHE_SHARDS = 64, RANGE_CACHE_SLOTS = 8 };

struct range_cache_shard {
  CACHE_ALIGNED ATOMIC(uint64_t) rows[LARGE_CLASS_COUNT][RANGE_CACHE_SLOTS];
};
extern struct range_cache_shard range_cache_shards[RANGE_CACHE_SHARDS];

INLINE size_t range_cache_granule(uint64_t word) { return (uint32_t)word - 1; }
INLINE uint32_t range_cache_site(uint64_t word) { return (uint32_t)(word >> 32); }

/* A range of the shard's row, the site's own before others, or NO_GRANULE. */
INLINE size_t range_cache_take_from(unsigned shard, unsigned class, uint32_t site) {
  ATOMIC(uint64_t) *row =
      range_cache_shards[shard % RANGE_CACHE_SHARDS].rows[class - SLAB_CLASS_COUNT];
  ATOMIC(uint64_t) *found = NULL;
  uint64_t word = 0;
  for (ATOMIC(uint64_t) *slot = row; slot < row + RANGE_CACHE_SLOTS; slot++) {
    uint64_t here = load_relaxed(slot);
    if (!here) continue;
    found = slot;
    word = here;
    if (range_cache_site(here) == site) break;
  }
  /* acquire: the range's record; pairs with the release in range_cache_put. */
  bool is_ours = found && cas_strong_acq_rel(found, &word, 0);
  return is_ours ? range_cache_granule(word) : NO_GRANULE;
}

/* The same of any shard, that of `home` first. */
size_t range_cache_take(unsigned home, unsigned class, uint32_t site);

/* Keeps a range of the class for a while; false when the shard has enough of them. */
bool range_cache_put(size_t granule, unsigned home, unsigned class);

/* Hands ranges that are old enough to the range arenas; the second form, before the process grows, all of the shard, and now
 * and then of all shards: true when there were any. */
void range_cache_purge(struct purge *purge, struct counters *counters);
bool range_cache_merge(unsigned home, struct counters *counters);

/* In a forked child, while it has one thread: another may have been emptying a shard. */
void range_cache_after_fork(void);

#endif
