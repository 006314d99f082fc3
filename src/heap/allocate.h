/* allocate.h: serves malloc when its magazine is empty, and all requests other than plain
 * malloc. */
#ifndef HAK_HEAP_ALLOCATE_H
#define HAK_HEAP_ALLOCATE_H

#include "cache/heap.h"
#include "map/allocation.h"

/* malloc above TINY_MAX_BYTES: the same pop for Mid and Large, Big beyond. */
void *heap_malloc_beyond_tiny(size_t size);
/* malloc of a class whose magazine is empty, or armed: while a profile is on every malloc takes
 * this path. */
void *heap_malloc_slow(size_t size, size_t place, struct heap *heap);

/* A block of the heap in use, or NULL with errno ENOMEM. */
void *heap_allocate(struct allocation *allocation);
/* A block of this named heap, or of the thread's own if that is NULL, whichever is in use. */
void *heap_allocate_in(struct hak_heap *named, struct allocation *allocation);
/* heap_allocate for a block that need not be zero; small ones mostly come from the magazines. */
void *heap_aligned(size_t alignment, size_t size, uint32_t site, enum maker maker);

/* The site of a caller that does not name one: its return address. */
INLINE uint32_t site_of_caller(uintptr_t return_address) {
  return (uint32_t)(return_address ^ return_address >> 32);
}

#endif
