/* resize.h: Large and Big blocks grow and shrink where they are, from one tier into the other too: both
 * are ranges. */
#ifndef HAK_LARGE_RESIZE_H
#define HAK_LARGE_RESIZE_H

#include "pool/range.h"

/* Changes a live block to `size` bytes, more than MID_MAX_BYTES; false when its right neighbour is live, or when the size is unavailable
 * without moving. */
bool resize_in_place(uintptr_t block, size_t size, struct counters *counters);

#endif
