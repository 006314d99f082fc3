/* checked_range.h: closed ranges: ranges of one block, whose pages are closed but for the block's.
 * In hardened mode for blocks that are too large for slabs; in any mode for guarded ones
 * (guard/guarded.h).
 *
 *   granule 0                                                    last granule
 *   [ closed page | slack, block: requested bytes, slack ][ closed … ]
 *                 page boundary                         page boundary
 *
 * Half of the guarded blocks begin at the first page boundary; all others lie as near to the last
 * one as their alignment, of 16 bytes or more, allows. The first byte beyond faults; the slack has
 * a pattern, which free checks. The size and the maker are in the range's record, out of reach of
 * an overflow.
 * The closed pages after a block are at least one; into the others, up to a granule, and into a
 * free neighbour it grows where it is. A free range is closed altogether and has no pages.  A block
 * with an alignment above a page's begins where its range does, after another's closed page. */
#ifndef HAK_CHECKED_CHECKED_RANGE_H
#define HAK_CHECKED_CHECKED_RANGE_H

#include "cache/heap.h"
#include "map/allocation.h"

/* A block, or NULL. */
void *checked_range_allocate(struct heap *heap, struct allocation *allocation);
/* In guard mode: a guarded block; mostly NULL. */
void *checked_range_guard(struct heap *heap, struct allocation *allocation);
/* No other thread may free the block from now on; false, after a report, when one has. `heap` may
 * be NULL. */
bool checked_range_end(struct heap *heap, uintptr_t block, const char *verb);
/* Frees a block that has ended and whose end has been checked; `heap` may be NULL, `entry` names
 * its heap. */
void checked_range_free(struct heap *heap, uintptr_t block, uint32_t entry);
/* Grows or shrinks in place a live block whose end has been checked; false when it must move. */
bool checked_range_resize(struct heap *heap, uintptr_t block, size_t size);
/* big_move_pages for a block that realloc has checked; 0 when the system cannot, else the block's
 * address. */
uintptr_t checked_range_move(uintptr_t *target, uintptr_t source, size_t bytes,
                             struct counters *counters);
/* Bytes from the block's start to the end of its last page: the most that may be requested. */
size_t checked_range_capacity(uintptr_t block);
/* Notes the requested bytes and the maker, and fills the slack after them. */
void checked_range_write_end(uintptr_t block, size_t size, enum maker maker);

#endif
