/* range_magazine.h: a thread's own freed Large ranges, in front of what all threads share (large/range_cache.h).
 *
 *   row[class] → slots, each a first granule + 1; where ends count (large/density.h), some of them for each end
 *
 * The program has just written to its blocks, and a locked instruction waits for these stores: so a thread takes and
 * keeps with plain ones.  Others empty them all the same, by age and before the process grows: they close them, make
 * every thread pass a barrier, and then look whether the thread is at them; if so they leave them alone.
 *
 * Those that hold something are in a list, so that threads which have freed a Large block once cost others nothing: their own
 * thread puts them there when it keeps the first, and who finds them empty takes them out.
 *
 *   law: a range in a slot has the entry of a freed block of its class, unless it was freed by two threads at once: who finds
 *        another there has not got it */
#ifndef HAK_LARGE_RANGE_MAGAZINE_H
#define HAK_LARGE_RANGE_MAGAZINE_H

#include "large/range_cache.h"

enum { RANGE_MAGAZINE_SLOTS = 8, END_SLOTS = 4, RANGE_ROW_SLOTS = RANGE_ENDS * END_SLOTS };

struct range_magazines {
  CACHE_ALIGNED ATOMIC(uint32_t) is_used; /* its thread takes or keeps */
  ATOMIC(uint32_t) is_closed; /* by the thread that empties them, or is about to: its number */
  ATOMIC(uint64_t) bytes;     /* of its blocks; whoever is at them writes it, others only read */
  bool is_listed; /* among those that may hold something; whoever is at them writes it */
  struct range_magazines *next_listed; /* in that list */
  struct range_magazines *next;        /* of all that were ever made; constant */
  uint32_t slots[LARGE_CLASS_COUNT][RANGE_ROW_SLOTS];
};

/* Every other thread can be made to pass a barrier: else whoever uses its own pays for one.  Relaxed: read anew each time. */
extern ATOMIC(bool) range_magazines_have_barrier;

/* What lies in those of all threads; walks them. */
uint64_t range_magazines_bytes(void);

/* For a heap that has none; NULL without memory. */
struct range_magazines *range_magazines_make(void);

/* By the thread that is at them: they hold something, and others may look for it. */
void range_magazines_join(struct range_magazines *magazines);

/* Around each use by the own thread; false while they are closed. */
INLINE bool range_magazines_enter(struct range_magazines *magazines) {
  store_relaxed(&magazines->is_used, 1);
  keep_store_order(); /* the barrier of the thread that closes them is the rest */
  /* After the store: who is stopped in between has been switched since, which is a barrier, too. */
  if (UNLIKELY(!load_relaxed(&range_magazines_have_barrier)))
    exchange_seq(&magazines->is_used, 1); /* before is_closed is read; pairs with empty_closed */
  /* seq: after is_used was written.  acquire: what was emptied; pairs with empty_closed. */
  if (LIKELY(!load_seq(&magazines->is_closed))) return true;
  store_release(&magazines->is_used, 0);
  return false;
}
INLINE void range_magazines_leave(struct range_magazines *magazines) {
  store_release(&magazines->is_used, 0); /* what was changed; pairs with empty_closed */
}

/* The slots of a class: room for 2 MiB; or, where ends count, of those of an end: for 4 ranges at most. */
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

INLINE size_t range_magazine_pop(struct range_magazines *magazines, unsigned class, unsigned end) {
  struct range_row row = range_magazine_row(magazines, class, end);
  uint32_t first = 0;
  for (unsigned slot = 0; slot < row.count && !first; slot++) {
    first = row.slots[slot];
    row.slots[slot] = 0;
  }
  if (!first) return NO_GRANULE;
  add_single_writer(&magazines->bytes, (uint64_t)0 - class_bytes(class));
  return first - 1;
}

/* A freed range of the class, for a block that ends there, or NO_GRANULE. */
INLINE size_t range_magazine_take(struct range_magazines *magazines, unsigned class, unsigned end) {
  if (UNLIKELY(!range_magazines_enter(magazines))) return NO_GRANULE;
  size_t granule = range_magazine_pop(magazines, class, end);
  range_magazines_leave(magazines);
  return granule;
}

INLINE bool range_magazine_push(struct range_magazines *magazines, unsigned class, unsigned end,
                                size_t granule) {
  struct range_row row = range_magazine_row(magazines, class, end);
  for (unsigned slot = 0; slot < row.count; slot++) {
    if (row.slots[slot]) continue;
    owner_map_set(granule, MAP_TAG_NONE | class);
    keep_store_order();
    row.slots[slot] = (uint32_t)granule + 1;
    add_single_writer(&magazines->bytes, class_bytes(class));
    return true;
  }
  return false;
}

/* Keeps the range of a block that is being freed, and ended there, whose entry says so then; false when there is no room. */
INLINE bool range_magazine_keep(struct range_magazines *magazines, unsigned class, unsigned end,
                                size_t granule) {
  if (UNLIKELY(!range_magazines_enter(magazines))) return false;
  bool is_kept = range_magazine_push(magazines, class, end, granule);
  if (UNLIKELY(!magazines->is_listed)) range_magazines_join(magazines);
  range_magazines_leave(magazines);
  return is_kept;
}

/* The range is not what it was when it was kept: it had been freed by two threads at once. */
void range_magazine_found_another(size_t granule, unsigned class);

/* Half of what would lie beside the range goes to the cache, as far as it is there: how many; or all of all classes.  By
 * the own thread. */
unsigned range_magazine_flush(struct range_magazines *magazines, unsigned class, size_t granule,
                              struct counters *counters);
void range_magazines_flush(struct range_magazines *magazines, struct counters *counters);
/* Ranges that come from the cache; what there is no room for goes to the arenas. */
void range_magazine_fill(struct range_magazines *magazines, unsigned class, const size_t *granules,
                         unsigned ranges, struct counters *counters);

/* Hands ranges that are old enough to the range arenas, of all threads and of the cache; of some threads only where the
 * round is bounded. */
void range_magazines_purge(struct purge *purge, struct counters *counters);
/* Before the process grows: all of the cache and of the own magazines (NULL: there are none), and now and then of others'.
 * Where blocks are mostly untouched others' go to the cache, and nothing else is done.  False: nothing was. */
bool range_magazines_merge(struct range_magazines *own, struct counters *counters);

/* In a forked child, while it has one thread: who was at them, or at the cache, is not there. */
void range_magazines_after_fork(void);

#endif
