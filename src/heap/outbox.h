/* outbox.h: blocks of other heaps' slabs that this thread freed, held back for a moment so that those
 * of one bitmap word go home in one atomic OR.
 *
 * A block is a bit in an open word.  A word has one place in the outbox; when the block of another word
 * wants the place, the older one goes home. */
#ifndef HAK_HEAP_OUTBOX_H
#define HAK_HEAP_OUTBOX_H

#include "heap/heap.h"

/* Adds a block of a slab class; true when that made it send everything home. */
bool outbox_add(struct heap *heap, void *block);
/* Adds a block whose word is open: nothing to send home.  False, and nothing done, when it is not so,
 * or when something is wrong with the block.  Needs no heap_enter; the constant heaps have no open word. */
bool outbox_try_add(struct heap *heap, void *block);
/* Sends everything home. */
void outbox_empty(struct heap *heap);

#endif
