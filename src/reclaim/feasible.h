/* feasible.h: recognises requests that cannot be served even if all free memory is given back, such
 * as an unchecked length field.
 *
 * Giving back all free memory takes milliseconds and leaves the caches empty; so it is done only if
 * it may help. The test errs on the safe side: a request refused here cannot be served at that
 * moment. */
#ifndef HAK_RECLAIM_FEASIBLE_H
#define HAK_RECLAIM_FEASIBLE_H

#include "cache/heap.h"
#include "map/allocation.h"

/* Before the first try of a Big request: false when no window and no limit has room for it.  No
 * system call. */
bool feasible_at_all(const struct allocation *allocation);

/* After the first try of any request: false when the hard limit or the system, which is asked,
 * would refuse it even with all free memory given back. */
bool feasible_after_giving_back(const struct heap *heap, const struct allocation *allocation);

#endif
