/* capacity.h: how many blocks a magazine may hold.
 *
 * The rule follows the program.  A magazine that misses on both sides in turn (a refill after a
 * flush, or the reverse) was too small for the load's swing: it doubles, as long as all magazines
 * together may hold no more than the program has in blocks of this heap.  A row of refills without
 * a flush (or of flushes) is growth: then larger batches pay, up to a few dozen blocks, and up to a
 * few hundred where that is little beside the class's slabs.  A magazine that is not used between
 * two checks is emptied and halved. */
#ifndef HAK_CACHE_CAPACITY_H
#define HAK_CACHE_CAPACITY_H

#include "cache/heap.h"

/* The bytes in the magazines now, of any heap. Walks them all. */
int64_t capacity_cached_bytes(const struct heap *heap);

/* Gives each magazine its first array. An empty magazine may be closed, without room for a block;
 * it opens at its next miss. */
void capacity_init(struct heap *heap);
void capacity_close(struct heap *heap, unsigned class);
/* Call at a refill / flush of the class, before blocks are moved; may replace the array. */
void capacity_note_miss(struct heap *heap, unsigned class, enum magazine_event miss);
/* Halves an empty magazine; false when it is as small as it began. */
bool capacity_shrink(struct heap *heap, unsigned class);
/* All magazines are empty: if they have room for more than `most` blocks together, each gets room
 * for its share. */
void capacity_shrink_all(struct heap *heap, unsigned most);
/* True when this magazine is one of those that together hold more than the program's bytes now
 * justify. */
bool capacity_exceeds_budget(struct heap *heap, unsigned class);

#endif
