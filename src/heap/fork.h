/* fork.h: the child keeps its own thread's heap; the others are parked when a heap is next needed
 * (cache/lost.h). */
#ifndef HAK_HEAP_FORK_H
#define HAK_HEAP_FORK_H

/* Registers the fork handlers, unless that was done. Before there is a second thread. */
void heaps_at_fork(void);

#endif
