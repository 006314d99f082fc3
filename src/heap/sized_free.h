/* sized_free.h: delete and free with a size argument. */
#ifndef HAK_HEAP_SIZED_FREE_H
#define HAK_HEAP_SIZED_FREE_H

#include <stddef.h>

#include "report/maker.h"

/* delete and delete[] with the size argument `size`, for a block that is not this heap's Tiny one
 * of that class: reports a wrong size. */
void heap_delete_sized_slow(void *block, size_t size);
void heap_delete_array_sized_slow(void *block, size_t size);
/* As those, for free: the block may have been shrunk since. */
void heap_free_sized_slow(void *block, size_t size);
/* For a block of any size with an alignment. */
void heap_free_sized_loosely(void *block, size_t size, size_t alignment, enum maker maker);

#endif
