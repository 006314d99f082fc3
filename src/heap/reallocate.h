/* reallocate.h: blocks that change their size without being copied. */
#ifndef HAK_HEAP_REALLOCATE_H
#define HAK_HEAP_REALLOCATE_H

#include "cache/heap.h"

/* Changes the size of a Large or Big block in place, to more than MID_MAX_BYTES; in hardened mode of any block to
 * any size. */
bool heap_resize(void *block, size_t size);
/* A block that was to move to `size` bytes, fewer than it has, stays where it is because memory was refused.  Returns it; errno is
 * as it was before the refusal. */
void *heap_keep(void *block, size_t size, int errno_before);
/* In hardened mode, of a live block that realloc is called with: it is malloc's from now on, after a word if it was new's. */
void heap_become_mallocs(void *block);
/* Moves the first `bytes` of one Big block to another by moving pages.  The target, which may begin at
 * another place in its first page now; NULL when it must be copied, *target too when the system has lost that block. */
void *heap_move_big(void **target, void *source, size_t bytes);

#endif
