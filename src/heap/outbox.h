/* outbox.h: blocks of other heaps' slabs that this thread freed, held back for a moment so that those
 * of one bitmap word go home in one atomic OR. */
#ifndef HAK_HEAP_OUTBOX_H
#define HAK_HEAP_OUTBOX_H

#include "heap/heap.h"

/* Adds a block of a slab class; true when that made it send everything home. */
bool outbox_add(struct heap *heap, void *block, size_t block_bytes);
/* Sends everything home. */
void outbox_empty(struct heap *heap);

#endif
