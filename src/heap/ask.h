/* ask.h: what the program asks about a block. */
#ifndef HAK_HEAP_ASK_H
#define HAK_HEAP_ASK_H

#include "cache/heap.h"

/* What begins at an address: nothing (reported; `verb` is what the program tried), a block of the C library's own
 * malloc, or a live block of ours: then also the bytes that may be used there. */
enum block_kind { BLOCK_NONE, BLOCK_FOREIGN, BLOCK_OWN };
enum block_kind heap_ask(const void *block, const char *verb, size_t *usable_bytes);

/* realloc leaves a block of so many usable bytes where it is when it shrinks to `size`: below half it moves, as a program
 * that shrinks wants its memory back, but not where less is not worth a move: a small block, or one that would leave its
 * granule for a slab, and come back when it grows again. */
enum { SMALL_BLOCK_BYTES = 32 };
INLINE bool heap_shrinks_in_place(size_t size, size_t usable_bytes) {
  size_t least =
      usable_bytes == class_bytes(SLAB_CLASS_COUNT) ? usable_bytes / 4 : usable_bytes / 2;
  return size <= usable_bytes && (size >= least || usable_bytes <= SMALL_BLOCK_BYTES);
}

/* What a Large or Big block was made for, whether a hard limit counts all of it or not. */
size_t heap_range_made_bytes(uintptr_t block, uint32_t entry);

/* True when the address lies in memory that was handed out. */
bool heap_owns(const void *address);

#endif
