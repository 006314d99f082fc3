/* free.h: frees blocks that the fast path could not push. */
#ifndef HAK_HEAP_FREE_H
#define HAK_HEAP_FREE_H

#include "cache/heap.h"
#include "report/maker.h"

/* free, delete and delete[] of blocks that the fast path could not push. */
void heap_free_slow(void *block);
void heap_delete_slow(void *block);
void heap_delete_array_slow(void *block);

/* Frees a block that does not go into a cache of this thread at once. */
void heap_free_the_long_way(void *block, enum maker maker);

#endif
