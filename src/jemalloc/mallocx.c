/* mallocx.c: the calls that jemalloc adds to malloc, for programs that are linked with it.  Blocks
 * of malloc and of mallocx are alike, as programs free one's by the other's call. */
#include <errno.h>
#include <string.h>

#include "api/malloc_family.h"
#include "heap/ask.h"
#include "heap/in_named.h"
#include "heap/reallocate.h"
#include "heap/sized_free.h"
#include "heap/thread.h"
#include "jemalloc/arenas.h"
#include "ranges/big.h"

/* In `flags`: the alignment's logarithm, and whether the block is zeroed; above, the thread cache
 * and the arena (jemalloc/arenas.h). */
enum { LG_ALIGNMENT_MASK = 0x3f, ZERO = 0x40, PLACE_SHIFT = 8 };

/* Around a call without a thread cache: the heap that moves blocks for it, or NULL. */
static struct heap *begin_call(int flags) {
  enum { CACHE_MASK = 0xfff, NO_CACHE = 1 };
  bool is_uncached = (flags >> PLACE_SHIFT & CACHE_MASK) == NO_CACHE;
  struct heap *heap = UNLIKELY(is_uncached) ? heap_of_this_thread() : NULL;
  if (!heap || heap->is_moving) return NULL;
  heap->is_moving = true;
  return heap;
}
static void end_call(struct heap *heap) {
  if (heap) heap->is_moving = false;
}

static void give(void *block, int flags) {
  struct heap *heap = begin_call(flags);
  if (LIKELY(!heap))
    heap_free(block);
  else
    heap_free_slow(block);
  end_call(heap);
}

static size_t alignment_of(int flags) { return (size_t)1 << (flags & LG_ALIGNMENT_MASK); }

/* Where a block moves: to the place in the flags, else within its heap. */
static hak_heap *heap_for(int flags, const void *block) {
  return flags >> PLACE_SHIFT ? je_heap_of_flags(flags) : named_of_block(block);
}

/* Zeroed to its end, so that rallocx need zero only the growth beyond it. */
static void *allocate(size_t size, int flags, uint32_t site) {
  struct allocation allocation = {.size = size, .alignment = alignment_of(flags), .site = site};
  if (LIKELY(!(flags & ~LG_ALIGNMENT_MASK)))
    return heap_aligned(allocation.alignment, size, site, MADE_BY_MALLOC);
  struct heap *heap = begin_call(flags);
  void *block = flags >> PLACE_SHIFT ? heap_allocate_in(je_heap_of_flags(flags), &allocation)
                                     : heap_allocate(&allocation);
  end_call(heap);
  return flags & ZERO ? family_zeroed(block, &allocation) : block;
}

static void clear_growth(void *block, size_t kept_bytes, int flags) {
  size_t usable_bytes = family_usable_size(block);
  if ((flags & ZERO) && usable_bytes > kept_bytes)
    big_clear((uintptr_t)block + kept_bytes, usable_bytes - kept_bytes);
}

/* ---- malloc and realloc ---------------------------------------------------------------------- */

EXPORT_UNDECLARED(void *, mallocx, size_t size, int flags) { return allocate(size, flags, SITE()); }

/* For an alignment or a place, which realloc does not take. */
static void *resize_there(void *block, size_t size, size_t usable_bytes, int flags, uint32_t site) {
  bool is_much_less = size < usable_bytes / 2;
  bool is_aligned = (uintptr_t)block % alignment_of(flags) == 0;
  if (!is_much_less && is_aligned && family_expand(block, size)) return block;
  struct allocation allocation = {.size = size, .alignment = alignment_of(flags), .site = site};
  int errno_before = errno;
  struct heap *heap = begin_call(flags);
  void *moved = heap_allocate_in(heap_for(flags, block), &allocation);
  end_call(heap);
  if (!moved) return is_much_less && is_aligned ? heap_keep(block, size, errno_before) : NULL;
  memcpy(moved, block, size < usable_bytes ? size : usable_bytes);
  give(block, flags);
  return moved;
}

/* A size of 0 is undefined; it does not free. */
EXPORT_UNDECLARED(void *, rallocx, void *block, size_t size, int flags) {
  uint32_t site = SITE();
  if (!block) return allocate(size, flags, site);
  if (!size) size = 1;
  size_t usable_bytes = family_usable_size(block);
  bool is_plain = !(flags & ~ZERO);
  void *resized = is_plain ? family_realloc(block, size, site)
                           : resize_there(block, size, usable_bytes, flags, site);
  if (resized) clear_growth(resized, usable_bytes, flags);
  return resized;
}

/* In place, to `size` and `extra` bytes, or at least `size`, or not at all.  Returns the usable
 * size. */
EXPORT_UNDECLARED(size_t, xallocx, void *block, size_t size, size_t extra, int flags) {
  size_t usable_bytes = family_usable_size(block), most;
  if (add_overflows(size, extra, &most) || !family_expand(block, most))
    (void)family_expand(block, size);
  clear_growth(block, usable_bytes, flags);
  return family_usable_size(block);
}

/* ---- free and questions ---------------------------------------------------------------------- */

EXPORT_UNDECLARED(void, dallocx, void *block, int flags) { give(block, flags); }

/* The size may be the requested one, that of sallocx or nallocx, or any between. */
EXPORT_UNDECLARED(void, sdallocx, void *block, size_t size, int flags) {
  if (UNLIKELY(flags >> PLACE_SHIFT))
    give(block, flags);
  else if (LIKELY(!(flags & LG_ALIGNMENT_MASK)))
    heap_free_sized_or(block, size, heap_free_sized_slow);
  else
    heap_free_sized_loosely(block, size, alignment_of(flags), MADE_BY_MALLOC);
}

EXPORT_UNDECLARED(size_t, sallocx, const void *block, int flags) {
  (void)flags;
  return family_usable_size(block);
}

/* 0: no such block is possible. */
EXPORT_UNDECLARED(size_t, nallocx, size_t size, int flags) {
  size_t alignment = alignment_of(flags);
  bool is_possible = size <= REQUEST_MAX_BYTES && alignment <= REQUEST_MAX_BYTES / 2;
  return is_possible ? heap_good_bytes(size, alignment) : 0;
}
