/* colour.h: where in its first page a Large or Big block begins.
 *
 * Blocks that all begin at a granule share a few sets of every cache for their pages' first lines, so that first writes (headers, counts,
 * one word a page) evict one another. So neighbouring blocks begin at different lines of their first page (slab colouring, after J.
 * Bonwick, 1994). Measured: docs/decisions/0010. */
#ifndef HAK_MAP_COLOUR_H
#define HAK_MAP_COLOUR_H

#include "map/size_class.h"

enum { COLOUR_STEP_BYTES = 128, COLOUR_COUNT = COLOUR_ROOM_BYTES / COLOUR_STEP_BYTES };

/* For a block whose range begins at `granule`. It depends on the place alone, so that a reused range is touched in the same lines again. */
INLINE size_t colour_bytes(size_t granule, size_t alignment_bytes) {
  if (alignment_bytes > COLOUR_STEP_BYTES) return 0;
  return granule % COLOUR_COUNT * COLOUR_STEP_BYTES;
}

#endif
