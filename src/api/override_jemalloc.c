/* override_jemalloc.c: the calls that jemalloc adds to malloc, for programs that are linked with
 * it.
 *
 * When this library is preloaded, such a program's malloc is hakmem's: a block of it that reached
 * jemalloc's sdallocx, or one of mallocx's that reached free, would end the program.  (Valkey frees
 * so; nallocx and sdallocx are tcmalloc's as well.) jemalloc's own reports (mallctl,
 * malloc_stats_print) stay: they describe a nearly empty heap. So a program that looks for all of
 * jemalloc's names to find out whether it runs on it does not find them here. */
#include <errno.h>
#include <string.h>

#include "api/malloc_family.h"
#include "heap/ask.h"
#include "heap/in_named.h"
#include "heap/reallocate.h"
#include "heap/sized_free.h"
#include "ranges/big.h"

/* In `flags`: the alignment's logarithm, and whether the block is zeroed.  The arena and
 * thread-cache fields above these are ignored. */
enum { LG_ALIGNMENT_MASK = 0x3f, ZERO = 0x40 };

static size_t alignment_of(int flags) { return (size_t)1 << (flags & LG_ALIGNMENT_MASK); }

/* Zeroed to its end, so that rallocx need zero only the growth beyond it. */
static void *allocate(size_t size, int flags, uint32_t site) {
  if (!(flags & ZERO)) return heap_aligned(alignment_of(flags), size, site, MADE_BY_MALLOC);
  struct allocation allocation = {.size = size, .alignment = alignment_of(flags), .site = site};
  return family_zeroed(heap_allocate(&allocation), &allocation);
}

static void clear_growth(void *block, size_t kept_bytes, int flags) {
  size_t usable_bytes = family_usable_size(block);
  if ((flags & ZERO) && usable_bytes > kept_bytes)
    big_clear((uintptr_t)block + kept_bytes, usable_bytes - kept_bytes);
}

/* ---- malloc and realloc ---------------------------------------------------------------------- */

EXPORT_UNDECLARED(void *, mallocx, size_t size, int flags) { return allocate(size, flags, SITE()); }

/* For an alignment, which realloc does not take. */
static void *resize_aligned(void *block, size_t size, size_t usable_bytes, int flags,
                            uint32_t site) {
  bool is_much_less = size < usable_bytes / 2;
  bool is_aligned = (uintptr_t)block % alignment_of(flags) == 0;
  if (!is_much_less && is_aligned && family_expand(block, size)) return block;
  struct allocation allocation = {.size = size, .alignment = alignment_of(flags), .site = site};
  int errno_before = errno;
  void *moved = heap_allocate_in(named_of_block(block), &allocation);
  if (!moved) return is_much_less && is_aligned ? heap_keep(block, size, errno_before) : NULL;
  memcpy(moved, block, size < usable_bytes ? size : usable_bytes);
  heap_free(block);
  return moved;
}

/* A size of 0 is undefined; it does not free. */
EXPORT_UNDECLARED(void *, rallocx, void *block, size_t size, int flags) {
  uint32_t site = SITE();
  if (!block) return allocate(size, flags, site);
  if (!size) size = 1;
  size_t usable_bytes = family_usable_size(block);
  void *resized = flags & LG_ALIGNMENT_MASK ? resize_aligned(block, size, usable_bytes, flags, site)
                                            : family_realloc(block, size, site);
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

EXPORT_UNDECLARED(void, dallocx, void *block, int flags) {
  (void)flags;
  heap_free(block);
}

/* The size may be the requested one, that of sallocx or nallocx, or any between. */
EXPORT_UNDECLARED(void, sdallocx, void *block, size_t size, int flags) {
  if (LIKELY(!(flags & LG_ALIGNMENT_MASK)))
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
