/* lifecycle.h: the life of the library and of a thread's heap.
 *
 *   thread's first slow path ─▶ heap_of_this_thread: takes over a parked heap, else makes one, after a few calls without
 *   thread's end ─▶ (destructor rounds) ─▶ everything flushed, heap parked, TLS → ended_heap
 *   a call after that ─▶ borrows a heap for the one call
 *   fork ─▶ the child keeps its own thread's heap; the others are parked when a heap is next needed */
#ifndef HAK_HEAP_LIFECYCLE_H
#define HAK_HEAP_LIFECYCLE_H

#include "cache/heap.h"

/* Reads the options, once; true when any is set. Any thread. */
bool library_has_options(void);

/* Sets the library up, once; false when the address space is refused.  Any thread. */
bool library_ready(void);

/* The calling thread's heap, made when needed; NULL when there is no memory, and for a thread that
 * has ended already (which may borrow). */
struct heap *heap_of_this_thread(void);

/* The first calls of a thread, which need no heap (cache/starter.h): takes a block of a slab class,
 * or frees one. NULL: it needs one. */
void *early_call(unsigned class, size_t bytes, void *freed);

/* A heap for one call of a thread whose heap is gone: caches_park gives it back. NULL without
 * memory. */
struct heap *heap_borrow(void);

/* Registers the fork handlers, unless that was done. Before there is a second thread. */
void heaps_at_fork(void);

#endif
