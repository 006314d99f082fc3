/* feasible.h: requests that cannot be served whatever is given back, such as a length field that nobody checked.
 *
 * To give everything back that is free takes milliseconds, and the program works on with empty caches; so nothing is,
 * unless it may help.  "May" is on the safe side: what is refused here cannot be had at that moment. */
#ifndef HAK_RECLAIM_FEASIBLE_H
#define HAK_RECLAIM_FEASIBLE_H

#include "cache/allocation.h"
#include "cache/heap.h"

/* Before the first try of a Big request: false when no window and no limit has room for it.  No system call. */
bool feasible_at_all(const struct allocation *allocation);

/* After the first try of any request: false when even with everything given back that is free it would be refused, by
 * the hard limit or by the system, which is asked. */
bool feasible_after_giving_back(const struct heap *heap, const struct allocation *allocation);

#endif
