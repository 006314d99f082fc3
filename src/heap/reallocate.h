/* reallocate.h: changes the size of blocks without copying them. */
#ifndef HAK_HEAP_REALLOCATE_H
#define HAK_HEAP_REALLOCATE_H

#include "cache/heap.h"

/* Changes the size of a Large or Big block in place, to more than MID_MAX_BYTES; in hardened mode
 * of any block. False when it must move. */
bool heap_resize(void *block, size_t size);
/* A block that was to move to `size` bytes, fewer than it has, stays where it is because memory was
 * refused.  Returns it; errno is as it was before the refusal. */
void *heap_keep(void *block, size_t size, int errno_before);
/* For a live block whose kind knows the request, passed to realloc: its maker is malloc from now
 * on; reports if it was new. */
void heap_become_mallocs(void *block);
/* Moves the first `bytes` of one Big block to another by moving pages.  Returns the target, which
 * may begin elsewhere in its first page now; NULL when the content must be copied, with *target
 * NULL when the system has lost that block. */
void *heap_move_big(void **target, void *source, size_t bytes);

#endif
