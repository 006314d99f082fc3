/* ask.h: what the program asks about a block. */
#ifndef HAK_HEAP_ASK_H
#define HAK_HEAP_ASK_H

#include "cache/heap.h"
#include "config/options.h"

/* What begins at an address: nothing (reported; `verb` is what the program tried), a block of the C library's own
 * malloc, or a live block of ours: then also the bytes that may be used there.  Of those in slabs it is told which is a sample of a
 * heap profile, and of all which is a named heap's. */
enum block_kind { BLOCK_NONE, BLOCK_FOREIGN, BLOCK_OWN, BLOCK_SAMPLE, BLOCK_NAMED };
enum block_kind heap_ask(const void *block, const char *verb, size_t *usable_bytes);

/* The same of an own block in a slab of one slot, by the maps alone; false where the above is to tell. */
INLINE bool heap_ask_quickly(const void *block, size_t *usable_bytes) {
  const struct heap *heap = heap_of_thread;
  size_t granule = granule_of((uintptr_t)block);
  if (UNLIKELY(granule >= load_relaxed(&window.granule_count) || options.harden)) return false;
  size_t class = heap_class_of(heap, load_relaxed(&window.owner_map[granule]));
  if (UNLIKELY(class >= SLAB_CLASS_COUNT)) return false;
  const struct slab_starts *starts = &slab_starts[class];
  if (UNLIKELY(!slab_block_starts_at(starts, (uintptr_t)block % GRANULE_BYTES) ||
               magazine_may_end_with(heap->magazines[class].top, block)))
    return false;
  *usable_bytes = starts->block_bytes;
  return true;
}

/* realloc leaves a block of so many usable bytes where it is when it shrinks to `size`: below half it moves, as a program
 * that shrinks wants its memory back, but not where less is not worth a move: a small block, or one whose content
 * is much to copy for what it frees, and again when it grows. */
enum { SMALL_BLOCK_BYTES = 32 };
INLINE bool heap_shrinks_in_place(size_t size, size_t usable_bytes) {
  bool is_worth_a_quarter = usable_bytes > STEPPED_MAX_BYTES && usable_bytes <= MID_MAX_BYTES;
  size_t least = is_worth_a_quarter ? usable_bytes / 4 : usable_bytes / 2;
  return size <= usable_bytes && (size >= least || usable_bytes <= SMALL_BLOCK_BYTES);
}

/* What a block has that is made for this size and alignment, both possible; in hardened and in guard mode the program may
 * use less of it, and of a Large or Big one where there is a hard limit. */
size_t heap_block_bytes(size_t size, size_t alignment);
/* What it may use in any case: the same, or `size` in those. */
size_t heap_good_bytes(size_t size, size_t alignment);

/* What a Large or Big block was made for, whether a hard limit counts all of it or not. */
size_t heap_range_made_bytes(uintptr_t block, uint32_t entry);

/* True when the address lies in memory that was handed out. */
bool heap_owns(const void *address);

#endif
