/* density.h: how much of its Large blocks the program touches.
 *
 * A block that is mostly untouched costs few pages as long as it stays whole; split, merged and cut anew, its
 * range ends as one whose pages are all resident, each touched by another block.  So what is looked at
 * is what the kernel says of some of the ranges that come back. */
#ifndef HAK_LARGE_DENSITY_H
#define HAK_LARGE_DENSITY_H

#include "pool/range.h"

/* The range comes back, as its thread has cached enough of its class; now and then it is looked at. */
void density_note(size_t granule);

/* Whether blocks are mostly untouched. */
bool density_is_low(void);

#endif
