/* thread.h: the life of a thread, as its heap sees it.
 *
 *   first slow path ─▶ heap_of_this_thread: takes over a parked heap, else makes one, after a few calls without
 *   end ─▶ (destructor rounds) ─▶ everything flushed, heap parked, TLS → ended_heap
 *   a call after that ─▶ borrows a heap for the one call
 *
 * A thread's malloc gives it blocks of a named heap in use (hak_heap_use):
 *
 *   heap_use ── the heap counts a user ── the thread's magazines are armed (cache/divert.h)
 *   malloc   ── they look empty ── heap_allocate ── heap->used ── heap_allocate_in
 *   realloc of a block of another heap ── heap_allocate_in that one ── served as without heap_use
 *
 * Free does not depend on it: a block's entry in the owner map names its heap.
 *
 *   law: a heap's users are the threads whose heap->used it is, in a forked child its only
 *   thread */
#ifndef HAK_HEAP_THREAD_H
#define HAK_HEAP_THREAD_H

#include "named/named_heap.h"

/* Sets up what heaps need; false when the address space is refused. Any thread. */
bool heaps_ready(void);

/* The calling thread's heap, made when needed; NULL when there is no memory, and for a thread that
 * has ended already (which may borrow). */
struct heap *heap_of_this_thread(void);

/* The first calls of a thread, which need no heap (cache/starter.h): takes a block of a slab class,
 * or frees one. NULL: it needs one.
 *
 * Each call costs a latch, which a working thread gives for less than 50 us in its life; a heap's
 * record and slabs cost a sleeping one 130 KiB and more.  A free makes a heap later than a malloc
 * does: it would keep a block of a shared slab. */
enum { EARLY_CALLS = 512, EARLY_FREES = 3 * EARLY_CALLS };
void *early_call(unsigned class, size_t bytes, void *freed);

/* A heap for one call of a thread whose heap is gone: caches_park gives it back. NULL without
 * memory. */
struct heap *heap_borrow(void);

/* The thread uses `named` from now on, or NULL: its own heap. By the thread of the heap, which may
 * be a constant one for NULL. False, and nothing changed, when `named` was destroyed. */
bool heap_use(struct heap *heap, struct hak_heap *named);

#endif
