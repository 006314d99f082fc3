/* fast_path.h: the two paths that nearly every call takes.
 *
 *   heap_malloc(size)                                heap_free(block)
 *     place ← table[size]                              entry ← owner map[block >> 16]      one load
 *     pop magazine at place                            place ← entry ^ our tag, < end?     of any thread's slab?
 *       └ empty: heap_malloc_slow                      push magazine at place
 *            └ refill                                    ├ full: heap_free_slow → flush
 *                                                        └ not so: heap_free_slow → by its kind (kinds.h)
 *
 * No lock, no atomic read-modify-write, no call; tests/shape/fast_path.golden holds their price. */
#ifndef HAK_HEAP_FAST_PATH_H
#define HAK_HEAP_FAST_PATH_H

#include "cache/heap.h"
#include "heap/allocate.h"
#include "heap/free.h"

INLINE void *heap_malloc(size_t size) {
  struct heap *heap = heap_of_thread;
  if (UNLIKELY(size > TINY_MAX_BYTES)) return heap_malloc_beyond_tiny(size);
  size_t place = tiny_place_of_size(size);
  void *block;
  return LIKELY(heap_pops(heap, &place, &block)) ? block : heap_malloc_slow(size, place, heap);
}

/* `slow` also depends on the freeing function. `bound` is one of the window's. */
INLINE void heap_free_below(ATOMIC(size_t) *bound, void *block, void (*slow)(void *)) {
  struct heap *heap = heap_of_thread;
  size_t granule = granule_of((uintptr_t)block);
  if (UNLIKELY(!is_below_relaxed(granule, bound))) {
    slow(block);
    return;
  }
  size_t place = heap_place_of(heap, load_relaxed(&window.owner_map[granule]));
  if (UNLIKELY(place >= PLACES_END || !heap_takes(heap, place, block))) slow(block);
}

INLINE void heap_free_or(void *block, void (*slow)(void *)) {
  heap_free_below(&window.granule_count, block, slow);
}
INLINE void heap_free(void *block) { heap_free_or(block, heap_free_slow); }

/* The class's place follows from the size: it is compared with the owner map's instead of being
 * read there. */
INLINE void heap_free_sized_below(ATOMIC(size_t) *bound, void *block, size_t size,
                                  void (*slow)(void *, size_t)) {
  struct heap *heap = heap_of_thread;
  size_t granule = granule_of((uintptr_t)block);
  if (UNLIKELY(size > TINY_MAX_BYTES || !is_below_relaxed(granule, bound))) {
    slow(block, size);
    return;
  }
  size_t place = tiny_place_of_size(size);
  if (UNLIKELY(heap_place_of(heap, load_relaxed(&window.owner_map[granule])) != place ||
               !heap_takes(heap, place, block)))
    slow(block, size);
}
INLINE void heap_free_sized_or(void *block, size_t size, void (*slow)(void *, size_t)) {
  heap_free_sized_below(&window.granule_count, block, size, slow);
}

#endif
