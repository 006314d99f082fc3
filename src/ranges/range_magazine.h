/* range_magazine.h: a thread's own freed Large ranges, in front of those that all threads share
 * (ranges/range_cache.h).
 *
 *   row[class] → slots, each a first granule + 1; where ends count (ranges/density.h), some of
 *   them for each end
 *
 * The program has just written to its blocks, and a locked instruction waits for these stores: so a
 * thread takes and keeps ranges with plain ones, under a biased lock. Other threads still empty
 * them, by age and before the process grows, but for those that their thread is using then.
 *
 * Magazines with ranges are in a list, so that threads which have freed a Large block once cost
 * others nothing: their own thread lists them when it keeps the first range, and a thread that
 * finds them empty takes them out.
 *
 *   law: a range in a slot has the entry of a freed block of its class, unless two threads freed
 *   it at once: a thread
 *        that finds another entry there leaves the range */
#ifndef HAK_RANGES_RANGE_MAGAZINE_H
#define HAK_RANGES_RANGE_MAGAZINE_H

#include "os/lock.h"
#include "ranges/range_cache.h"

enum { RANGE_MAGAZINE_SLOTS = 8, END_SLOTS = 4, RANGE_ROW_SLOTS = RANGE_ENDS * END_SLOTS };

struct range_magazines {
  CACHE_ALIGNED struct biased lock; /* its thread takes or keeps; others empty them */
  ATOMIC(uint64_t) bytes; /* of its blocks; written by the thread using them, others only read */
  bool is_listed;         /* among those that may hold ranges; written by the thread using them */
  struct range_magazines *next_listed; /* in that list */
  struct range_magazines *next;        /* all ever made; constant */
  uint32_t slots[LARGE_CLASS_COUNT][RANGE_ROW_SLOTS];
};

/* The bytes in all threads' magazines; walks them. */
uint64_t range_magazines_bytes(void);

/* Before the second thread: the kernel makes the barrier ready without waiting for others. */
void range_magazines_share(void);
/* For a heap without magazines; NULL without memory. */
struct range_magazines *range_magazines_make(void);

/* Called by the thread using them: they hold ranges, and others may look for them. */
void range_magazines_join(struct range_magazines *magazines);

/* The slots of a class: room for 2 MiB; or, where ends count, those of one end: for 4 ranges at
 * most. */
struct range_row {
  uint32_t *slots;
  unsigned count;
};
INLINE struct range_row range_magazine_row(struct range_magazines *magazines, unsigned class,
                                           unsigned end) {
  unsigned granules = large_granules_of_class(class);
  uint32_t end_mask = load_relaxed(&density_end_mask);
  unsigned most = end_mask ? END_SLOTS : RANGE_MAGAZINE_SLOTS;
  return (struct range_row){
      .slots = magazines->slots[class - SLAB_CLASS_COUNT] + (end & end_mask) * END_SLOTS,
      .count = granules <= 4   ? most
               : granules <= 8 ? 4
                               : 2};
}

/* A freed range of the class, for a block that ends there, or NO_GRANULE. */
INLINE size_t range_magazine_take(struct range_magazines *magazines, unsigned class, unsigned end) {
  struct range_row row = range_magazine_row(magazines, class, end);
  uint32_t first = 0;
  if (UNLIKELY(!biased_take(&magazines->lock))) return NO_GRANULE;
  for (unsigned slot = 0; slot < row.count && !first; slot++) {
    first = row.slots[slot];
    row.slots[slot] = 0;
  }
  if (first) add_single_writer(&magazines->bytes, (uint64_t)0 - class_bytes(class));
  biased_give(&magazines->lock);
  return first ? first - 1 : NO_GRANULE;
}

/* Keeps the range of a block that is being freed, and ended there, whose entry then says so; false
 * without room. */
INLINE bool range_magazine_keep(struct range_magazines *magazines, unsigned class, unsigned end,
                                size_t granule) {
  struct range_row row = range_magazine_row(magazines, class, end);
  if (UNLIKELY(!biased_take(&magazines->lock))) return false;
  unsigned slot = 0;
  while (slot < row.count && row.slots[slot]) slot++;
  if (slot < row.count) {
    owner_map_set(granule, map_entry(MAP_TAG_NONE, class));
    keep_store_order();
    row.slots[slot] = (uint32_t)granule + 1;
    add_single_writer(&magazines->bytes, class_bytes(class));
  }
  if (UNLIKELY(!magazines->is_listed)) range_magazines_join(magazines);
  biased_give(&magazines->lock);
  return slot < row.count;
}

/* The range's entry changed since it was kept: two threads had freed it at once. */
void range_magazine_found_another(size_t granule, unsigned class);

/* Called by the owning thread. Moves half of this range's row to the cache, and returns the number
 * moved. */
unsigned range_magazine_flush(struct range_magazines *magazines, unsigned class, size_t granule,
                              struct counters *counters);
/* Called by the owning thread. Empties all rows into the cache. */
void range_magazines_flush(struct range_magazines *magazines, struct counters *counters);
/* Keeps ranges that come from the cache; those without room go to the arenas. */
void range_magazine_fill(struct range_magazines *magazines, unsigned class, const size_t *granules,
                         unsigned ranges, struct counters *counters);

/* Hands ranges that are old enough to the range arenas, of all threads and of the cache; of some
 * threads only where the round is bounded. */
void range_magazines_purge(struct purge *purge, struct counters *counters);
/* Before the process grows by `bytes`: merges all ranges of the cache and of the calling thread's
 * magazines (NULL: it has none), and at times those of others. Where blocks are mostly untouched
 * others' ranges go to the cache, and nothing else is done. False: nothing was done. */
bool range_magazines_merge(struct range_magazines *own, size_t bytes, struct counters *counters);

/* In a forked child, while it has one thread: no other thread is using them, or the cache,
 * there. */
void range_magazines_after_fork(void);

#endif
