/* slow_path.h: what the fast paths fall into. */
#ifndef HAK_HEAP_SLOW_PATH_H
#define HAK_HEAP_SLOW_PATH_H

#include "cache/heap.h"
#include "guard/maker.h"

/* malloc above TINY_MAX_BYTES: the same pop for Mid and Large, Big beyond. */
void *heap_malloc_beyond_tiny(size_t size);
/* malloc of a class whose magazine is empty. */
void *heap_malloc_slow(size_t size);
/* free, delete and delete[] of anything that the fast path could not push. */
void heap_free_slow(void *block);
void heap_delete_slow(void *block);
void heap_delete_array_slow(void *block);
/* delete and delete[] of a block that is said to have been made for `size` bytes, and is not this heap's Tiny one of that
 * class: it is reported if it cannot have been. */
void heap_delete_sized_slow(void *block, size_t size);
void heap_delete_array_sized_slow(void *block, size_t size);
/* The same of one that had an alignment, or may have been shrunk since. */
void heap_free_sized_loosely(void *block, size_t size, size_t alignment, enum maker maker);

/* An explicit request: aligned, zeroed or with a call site of its own. */
struct allocation {
  size_t size;
  size_t alignment; /* a power of two */
  uint32_t site;
  bool is_growing; /* it outgrew its place, and may grow on */
  bool is_zero;    /* out: the block reads as zero already */
  enum maker maker;
};
/* A block, or NULL with errno ENOMEM. */
void *heap_allocate(struct allocation *allocation);
/* The same for a block that need not be zero; small ones mostly come from the magazines. */
void *heap_aligned(size_t alignment, size_t size, uint32_t site);

/* The site of a caller that does not name one: its return address. */
INLINE uint32_t site_of_caller(uintptr_t return_address) {
  return (uint32_t)(return_address ^ return_address >> 32);
}

/* What begins at an address: nothing (reported; `verb` is what the program tried), a block of the C library's own
 * malloc, or a live block of ours: then also the bytes that may be used there. */
enum block_kind { BLOCK_NONE, BLOCK_FOREIGN, BLOCK_OWN };
enum block_kind heap_ask(const void *block, const char *verb, size_t *usable_bytes);

/* realloc leaves a block of so many usable bytes where it is when it shrinks to `size`: below half it moves, as a program
 * that shrinks wants its memory back, but not where less is not worth a move. */
enum { SMALL_BLOCK_BYTES = 32 };
INLINE bool heap_shrinks_in_place(size_t size, size_t usable_bytes) {
  return size <= usable_bytes && (size >= usable_bytes / 2 || usable_bytes <= SMALL_BLOCK_BYTES);
}

/* Changes the size of a Large or Big block in place, to more than MID_MAX_BYTES; in hardened mode of any block to
 * any size. */
bool heap_resize(void *block, size_t size);
/* In hardened mode, of a live block that realloc is called with: it is malloc's from now on, after a word if it was new's. */
void heap_become_mallocs(void *block);
/* Moves the first `bytes` of one Big block to another by moving pages.  The target, which may begin at
 * another place in its first page now; NULL when it must be copied, *target too when the system has lost that block. */
void *heap_move_big(void **target, void *source, size_t bytes);

/* True when the address lies in memory that was handed out. */
bool heap_owns(const void *address);

#endif
