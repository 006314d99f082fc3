#include "api/malloc_family.h"

#include <errno.h>
#include <string.h>

#include "heap/ask.h"
#include "heap/in_named.h"
#include "heap/reallocate.h"
#include "heap/sampling.h"
#include "heap/tracing.h"
#include "os/os.h"
#include "ranges/big.h"

/* From this size on moving pages is cheaper than copying bytes (measured: docs/decisions/0003). */
#define MOVE_PAGES_MIN_BYTES ((size_t)4 << 20)
/* From this size on a block that outgrew its place gets one where it may grow on
 * (docs/decisions/0022). */
#define ROOMY_MIN_BYTES ((size_t)192 << 10)

void *fail_with(int error) {
  errno = error;
  return NULL;
}

/* Compares a tiny size once. */
INLINE void *malloc_site(size_t size, uint32_t site) {
  if (LIKELY(size <= TINY_MAX_BYTES)) return heap_malloc(size);
  if (LIKELY(size <= MID_MAX_BYTES)) return heap_malloc_beyond_tiny(size);
  return heap_aligned(1, size, site, MADE_BY_MALLOC);
}
RESIDENT void *family_malloc_site(size_t size, uint32_t site) { return malloc_site(size, site); }

/* ---- calloc ---------------------------------------------------------------------------------- */

NOINLINE static void *calloc_range(size_t bytes, uint32_t site) {
  struct allocation allocation = {.size = bytes, .alignment = 1, .site = site};
  void *block = heap_allocate(&allocation);
  if (block && !allocation.is_zero) big_clear((uintptr_t)block, bytes);
  return block;
}

RESIDENT void *family_calloc(size_t count, size_t size, uint32_t site) {
  size_t bytes;
  if (UNLIKELY(multiply_overflows(count, size, &bytes))) return fail_with(ENOMEM);
  if (UNLIKELY(bytes > MID_MAX_BYTES)) return calloc_range(bytes, site);
  void *block = opaque_pointer(malloc_site(bytes, site));
  return block ? memset(block, 0, bytes) : NULL;
}

void *family_zeroed(void *block, const struct allocation *allocation) {
  block = opaque_pointer(block);
  if (block && !allocation->is_zero) big_clear((uintptr_t)block, family_usable_size(block));
  return block;
}

/* ---- realloc --------------------------------------------------------------------------------- */

/* A block that moves does not go to the heap in use, whose blocks may be freed all at once. */
NOINLINE static void *malloc_target(const void *block, size_t size, uint32_t site,
                                    bool is_growing) {
  struct allocation allocation = {
      .size = size, .alignment = 1, .site = site, .is_growing = is_growing};
  return heap_allocate_in(named_of_block(block), &allocation);
}

/* *target becomes another block, or NULL, where the system has lost it. */
NOINLINE static void *move_pages(void **target, void *block, size_t size, size_t keep_bytes,
                                 uint32_t site) {
  void *moved = heap_move_big(target, block, keep_bytes);
  if (moved && moved != *target) tracing_move(heap_of_thread, *target, moved, size);
  if (UNLIKELY(!*target)) *target = malloc_target(block, size, site, false);
  return moved;
}

INLINE void *move(void *block, enum kind kind, size_t size, size_t keep_bytes, uint32_t site) {
  bool is_named = kind >= KIND_named_slab && kind <= KIND_hardened_named_range;
  bool is_range = kind != KIND_slab;
  bool is_large = kind_knows_request(kind) ? size > MID_MAX_BYTES
                                           : keep_bytes > MID_MAX_BYTES && size > ROOMY_MIN_BYTES;
  bool is_growing = is_range && !is_named && size > keep_bytes && is_large;
  bool is_other = is_growing || UNLIKELY(is_named || heap_of_thread->used);
  int errno_before = size == keep_bytes ? errno : 0;
  void *target =
      is_other ? malloc_target(block, size, site, is_growing) : family_malloc_site(size, site);
  void *moved = target && is_range && keep_bytes >= MOVE_PAGES_MIN_BYTES && !is_named
                    ? move_pages(&target, block, size, keep_bytes, site)
                    : NULL;
  if (UNLIKELY(!target)) return size == keep_bytes ? heap_keep(block, size, errno_before) : NULL;
  if (!moved) moved = memcpy(target, block, keep_bytes);
  heap_free(block);
  return moved;
}

NOINLINE static void *realloc_any(void *block, size_t size, uint32_t site) {
  if (size == 0) return heap_free(block), NULL;
  if (UNLIKELY(size > REQUEST_MAX_BYTES)) return fail_with(ENOMEM);
  size_t usable_bytes;
  enum kind kind = heap_ask(block, "realloc", &usable_bytes);
  if (UNLIKELY(kind == KIND_none)) return fail_with(EINVAL); /* reported already */
  if (UNLIKELY(kind == KIND_foreign)) return os_libc_malloc()->realloc(block, size);
  bool is_known = kind_knows_request(kind);
  if (UNLIKELY(is_known)) heap_become_mallocs(block);
  if (is_known ? size == usable_bytes : heap_shrinks_in_place(size, usable_bytes))
    return kind == KIND_slab && !heap_is_armed_by(heap_of_thread, ARMED_BY_TRACE)
               ? block
               : sampling_note_kept(block, size);
  bool may_resize = is_known || (usable_bytes > MID_MAX_BYTES && size > MID_MAX_BYTES);
  if (may_resize && heap_resize(block, size)) return block;
  tracing_resize(heap_of_thread, block, 0); /* it moves */
  return move(block, kind, size, size < usable_bytes ? size : usable_bytes, site);
}

NOINLINE static void *move_smaller(void *block, size_t size, uint32_t site) {
  return move(block, KIND_slab, size, size, site);
}

/* Most blocks are the thread's own, in a slab, and grow. Apart from family_realloc, whose calls
 * without a block save no registers then. */
RESIDENT NOINLINE static void *realloc_block(void *block, size_t size, uint32_t site) {
  size_t usable_bytes;
  if (UNLIKELY(!size || !heap_ask_quickly(block, &usable_bytes) || heap_of_thread->used))
    return realloc_any(block, size, site);
  if (size <= usable_bytes)
    return heap_shrinks_in_place(size, usable_bytes) ? block : move_smaller(block, size, site);
  void *target = family_malloc_site(size, site);
  if (UNLIKELY(!target)) return NULL;
  memcpy(target, block, usable_bytes);
  heap_free(block);
  return target;
}

RESIDENT void *family_realloc(void *block, size_t size, uint32_t site) {
  return block ? realloc_block(block, size, site) : malloc_site(size, site);
}

RESIDENT void *family_reallocarray(void *block, size_t count, size_t size, uint32_t site) {
  size_t bytes;
  if (UNLIKELY(multiply_overflows(count, size, &bytes))) return fail_with(ENOMEM);
  return family_realloc(block, bytes, site);
}

void *family_expand(void *block, size_t size) {
  if (!block || size > REQUEST_MAX_BYTES) return NULL;
  size_t usable_bytes = family_usable_size(block);
  bool fits = size <= usable_bytes;
  bool are_ranges = usable_bytes > MID_MAX_BYTES && size > MID_MAX_BYTES;
  if (fits && usable_bytes <= LARGE_MAX_BYTES) return block; /* too little for a change */
  return (are_ranges && heap_resize(block, size)) || fits ? block : NULL;
}

/* ---- alignment ------------------------------------------------------------------------------- */

RESIDENT void *family_aligned_alloc(size_t alignment, size_t size, uint32_t site) {
  if (UNLIKELY(!is_power_of_two(alignment))) return fail_with(EINVAL);
  return heap_aligned(alignment, size, site, MADE_BY_MALLOC);
}

/* As in glibc: an alignment is rounded up to a power of two, and invalid above the largest. */
void *family_memalign(size_t alignment, size_t size, uint32_t site) {
  if (UNLIKELY(alignment > SIZE_MAX / 2 + 1)) return fail_with(EINVAL);
  return heap_aligned(power_of_two_at_least(alignment), size, site, MADE_BY_MALLOC);
}

RESIDENT int family_posix_memalign(void **out, size_t alignment, size_t size, uint32_t site) {
  if (UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void *))) return EINVAL;
  void *block = heap_aligned(alignment, size, site, MADE_BY_MALLOC);
  if (UNLIKELY(!block))
    return ENOMEM; /* and in errno, where glibc leaves it, and programs read it */
  *out = block;
  return 0;
}

void *family_valloc(size_t size, uint32_t site) {
  return heap_aligned(os_page_bytes(), size, site, MADE_BY_MALLOC);
}

void *family_pvalloc(size_t size, uint32_t site) {
  size_t page_bytes = os_page_bytes();
  if (UNLIKELY(size > REQUEST_MAX_BYTES - page_bytes)) return fail_with(ENOMEM);
  size_t pages_bytes = round_up(size, page_bytes);
  return heap_aligned(page_bytes, pages_bytes ? pages_bytes : page_bytes, site, MADE_BY_MALLOC);
}

void *family_aligned_calloc(size_t alignment, size_t bytes, uint32_t site) {
  if (UNLIKELY(!is_power_of_two(alignment))) return fail_with(EINVAL);
  struct allocation allocation = {.size = bytes, .alignment = alignment, .site = site};
  void *block = opaque_pointer(heap_allocate(&allocation));
  if (block && !allocation.is_zero) big_clear((uintptr_t)block, bytes);
  return block;
}

/* ---- questions ------------------------------------------------------------------------------- */

NOINLINE static size_t ask_usable_size(const void *block) {
  size_t usable_bytes;
  return block && heap_ask(block, "malloc_usable_size", &usable_bytes) ? usable_bytes : 0;
}

RESIDENT size_t family_usable_size(const void *block) {
  size_t usable_bytes;
  return LIKELY(heap_ask_quickly(block, &usable_bytes)) ? usable_bytes : ask_usable_size(block);
}
