/* use.h: a thread's malloc gives it blocks of a named heap (hak_heap_use).
 *
 *   heap_use ── the heap counts a user ── the thread's magazines are armed (cache/divert.h)
 *   malloc   ── they look empty ── heap_allocate ── heap->used ── heap_allocate_in
 *   realloc of a block of another heap ── heap_allocate_in that one ── served as without heap_use
 *
 * Free does not depend on it: a block's entry in the owner map names its heap.
 *
 *   law: a heap's users are the threads whose heap->used it is, in a forked child its only
 *   thread */
#ifndef HAK_HEAP_USE_H
#define HAK_HEAP_USE_H

#include "cache/heap.h"
#include "named/named_heap.h"

/* The thread uses `named` from now on, or NULL: its own heap. By the thread of the heap, which may
 * be a constant one for NULL. False, and nothing changed, when `named` was destroyed. */
bool heap_use(struct heap *heap, struct hak_heap *named);

/* Called when the heap's thread ends. */
void heap_end_use(struct heap *heap);

#endif
