/* density.h: the part of its Large blocks that the program touches.
 *
 * A mostly untouched block costs few pages as long as it stays whole; split, merged and cut anew,
 * its range ends as one whose pages are all resident, each touched by another block. So the
 * residency of some freed ranges is read from the kernel. */
#ifndef HAK_RANGES_DENSITY_H
#define HAK_RANGES_DENSITY_H

#include "ranges/range.h"

/* The range comes back, as its thread has cached enough of its class; some of these are looked
 * at. */
void density_note(size_t granule);

/* Whether blocks are mostly untouched. */
bool density_is_low(void);

/* Where blocks are mostly untouched except at their ends, a range is kept for blocks that end in
 * the same eighth of its last granule, so that few of its pages are ever touched: 7 while that is
 * so, else 0. Less where a page holds more than one eighth. */
enum { RANGE_ENDS = 8, END_STEP_BYTES = (int)(GRANULE_BYTES / RANGE_ENDS) };
extern ATOMIC(uint32_t) density_end_mask; /* relaxed: a range in another row is found later */

/* The part of its last granule in which a block of this size ends. */
INLINE uint8_t density_end_of(size_t bytes) {
  return (uint8_t)((bytes + COLOUR_ROOM_BYTES - 1) / END_STEP_BYTES % RANGE_ENDS);
}

#endif
