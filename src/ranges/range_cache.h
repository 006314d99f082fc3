/* range_cache.h: freed Large ranges for which threads' own magazines have no room
 * (ranges/range_magazine.h), kept whole, found again by class and call site.
 *
 *   row[class] → a lock, and a stack of words:   | call site : 29 | end : 3 | first granule : 32 |
 *
 * All threads share them, and they go back by age. A range in a row belongs to the row alone. */
#ifndef HAK_RANGES_RANGE_CACHE_H
#define HAK_RANGES_RANGE_CACHE_H

#include "ranges/density.h"

/* Takes ranges of the class for blocks that end there, `most` at most, the call site's own first;
 * returns their number. */
struct range_wish {
  unsigned class;
  uint32_t site;
  uint8_t end; /* without meaning unless density_end_mask says so */
};
unsigned range_cache_take(const struct range_wish *wish, size_t *granules, unsigned most,
                          struct counters *counters);

/* Keeps a range of the class for a while, or gives it to the arenas when there are enough of
 * them. */
void range_cache_give(size_t granule, unsigned class, struct counters *counters);

/* Hands ranges that are old enough to the range arenas. */
void range_cache_purge(struct purge *purge, struct counters *counters);

/* In a forked child, while it has one thread: a row that another thread was changing is lost. */
void range_cache_after_fork(void);

#endif
