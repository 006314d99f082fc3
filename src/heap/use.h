/* use.h: a thread's malloc gives it blocks of a named heap (hak_heap_use).
 *
 *   heap_use ── the heap counts a user ── the thread's magazines are armed (cache/divert.h)
 *   malloc   ── they look empty ── heap_allocate ── heap->used ── heap_named_allocate (heap/in_named.h)
 *   realloc of a block that lies elsewhere ── allocation.is_own ── where it would have gone
 *
 * Free knows nothing of it: a block's entry in the owner map says whose it is.
 *
 *   law: a heap's users are the threads whose heap->used it is, in a forked child the one that there is */
#ifndef HAK_HEAP_USE_H
#define HAK_HEAP_USE_H

#include "cache/heap.h"
#include "named/named_heap.h"

/* `named` from now on, or NULL: the thread's own.  By the thread of the heap, which may be a constant one for NULL.  False, and
 * nothing changed, when it was destroyed. */
bool heap_use(struct heap *heap, struct hak_heap *named);

/* Its thread is ending. */
void heap_end_use(struct heap *heap);

#endif
