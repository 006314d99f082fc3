/* sized_free.h: delete and free that say how large the block is. */
#ifndef HAK_HEAP_SIZED_FREE_H
#define HAK_HEAP_SIZED_FREE_H

#include <stddef.h>

#include "guard/maker.h"

/* delete and delete[] of a block that is said to have been made for `size` bytes, and is not this heap's Tiny one of that
 * class: it is reported if it cannot have been. */
void heap_delete_sized_slow(void *block, size_t size);
void heap_delete_array_sized_slow(void *block, size_t size);
/* The same of free: the block may have been shrunk since. */
void heap_free_sized_slow(void *block, size_t size);
/* The same of one that had an alignment, of any size. */
void heap_free_sized_loosely(void *block, size_t size, size_t alignment, enum maker maker);

#endif
