/* lost.h: in a forked child, the heaps of threads that did not come along. */
#ifndef HAK_CACHE_LOST_H
#define HAK_CACHE_LOST_H

#include "cache/heap.h"

/* Parks them, if nobody has.  Cheap when there are none. */
void heaps_park_lost_threads(void);

/* While the child has one thread: `survivor` is that thread's heap. */
void lost_after_fork(struct heap *survivor);

#endif
