/* ask.h: answers the program's questions about a block. */
#ifndef HAK_HEAP_ASK_H
#define HAK_HEAP_ASK_H

#include "cache/heap.h"
#include "heap/kinds.h"
#include "ranges/big.h"

/* The kind of a block, and its usable bytes; KIND_none after a report: `verb` names the operation
 * tried. */
enum kind heap_ask(const void *block, const char *verb, size_t *usable_bytes);

/* heap_ask for an own block in a slab of one slot, by the maps alone; false where heap_ask must
 * decide. */
INLINE bool heap_ask_quickly(const void *block, size_t *usable_bytes) {
  const struct heap *heap = heap_of_thread;
  size_t granule = granule_of((uintptr_t)block);
  if (UNLIKELY(!is_below_relaxed(granule, &window.granule_count))) return false;
  size_t place = heap_place_of(heap, load_relaxed(&window.owner_map[granule]));
  if (UNLIKELY(place >= PLACES_END)) return false;
  const struct slab_starts *starts = &slab_starts[place / PLACES_A_CLASS];
  if (UNLIKELY(!slab_block_starts_at(starts, (uintptr_t)block % GRANULE_BYTES) ||
               magazine_may_end_with(heap_magazine_at(heap, &place)->top, block)))
    return false;
  *usable_bytes = starts->block_bytes;
  return true;
}

/* Whether realloc shrinks a block of `usable_bytes` to `size` in place. Below half it moves, as a
 * program that shrinks wants its memory back; but not a small block, or one whose copy costs more
 * than it frees, and again when it grows. */
enum { SMALL_BLOCK_BYTES = 32 };
INLINE bool heap_shrinks_in_place(size_t size, size_t usable_bytes) {
  bool is_worth_a_quarter = usable_bytes > STEPPED_MAX_BYTES && usable_bytes <= MID_MAX_BYTES;
  size_t least = is_worth_a_quarter ? usable_bytes / 4 : usable_bytes / 2;
  return size <= usable_bytes && (size >= least || usable_bytes <= SMALL_BLOCK_BYTES);
}

/* The bytes of a block made for this size and alignment, both possible; in hardened and guard mode,
 * and of a Large or Big block with a hard limit, the program may use fewer. */
size_t heap_block_bytes(size_t size, size_t alignment);
/* The bytes that the program may use in any case: the same, or `size` in those cases. */
size_t heap_good_bytes(size_t size, size_t alignment);

/* The size that a Large or Big block was made for, even if a hard limit counts less than all of
 * it. */
INLINE size_t heap_range_bytes(uintptr_t block, uint32_t entry) {
  return map_entry_is_big(entry) ? big_usable_bytes(block) : class_bytes(map_slab_class(entry));
}

/* True when the address lies in memory that was handed out. */
bool heap_owns(const void *address);

#endif
