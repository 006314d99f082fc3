/* free.h: frees blocks that the fast path could not push. */
#ifndef HAK_HEAP_FREE_H
#define HAK_HEAP_FREE_H

#include "cache/heap.h"
#include "report/maker.h"

/* free, delete and delete[] of blocks that the fast path could not push. */
void heap_free_slow(void *block);
void heap_delete_slow(void *block);
void heap_delete_array_slow(void *block);

/* Frees a block that must have been made by `maker`, as hardened mode checks. */
void heap_free_made(void *block, enum maker maker);

#endif
