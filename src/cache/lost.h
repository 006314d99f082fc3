/* lost.h: in a forked child, the heaps of threads that did not come along. */
#ifndef HAK_CACHE_LOST_H
#define HAK_CACHE_LOST_H

#include "cache/heap.h"

/* Visits `most` heaps, going on where the last visit ended, and parks those of such threads.  True when there may be more.
 * Cheap when there are none. */
bool lost_park(size_t most);
enum { LOST_A_STEP = 16 };

/* While the child has one thread: `survivor` is that thread's heap. */
void lost_after_fork(struct heap *survivor);

#endif
