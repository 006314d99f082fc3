/* lost.h: in a forked child, handles the heaps of threads that the fork did not copy. */
#ifndef HAK_CACHE_LOST_H
#define HAK_CACHE_LOST_H

#include "cache/heap.h"

/* Visits `most` heaps, continuing where the last visit ended, and parks those of such threads. True
 * when there may be more. */
bool lost_park(size_t most);
/* Parking one copies a dozen pages or more, which costs a thread of the child 30 to 200 us. */
enum { LOST_A_STEP = 2 };

/* Called while the child has one thread; `survivor` is that thread's heap. */
void lost_after_fork(struct heap *survivor);

#endif
