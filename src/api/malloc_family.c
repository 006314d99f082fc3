#include "api/malloc_family.h"

#include <errno.h>
#include <string.h>

#include "config/options.h"
#include "heap/ask.h"
#include "heap/in_named.h"
#include "heap/reallocate.h"
#include "heap/sampling.h"
#include "large/big.h"
#include "os/os.h"

/* From this size on moving pages is cheaper than copying bytes (measured: docs/decisions/0003). */
#define MOVE_PAGES_MIN_BYTES ((size_t)4 << 20)

/* From this size on a block that outgrew its place gets one where it may grow on (docs/decisions/0022). */
#define ROOMY_MIN_BYTES ((size_t)192 << 10)

static void *no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

RESIDENT void *family_malloc_site(size_t size, uint32_t site) {
  return size <= MID_MAX_BYTES ? heap_malloc(size) : heap_aligned(1, size, site);
}

/* ---- calloc ------------------------------------------------------------------------------------------ */

RESIDENT void *family_calloc(size_t count, size_t size, uint32_t site) {
  size_t bytes;
  if (UNLIKELY(multiply_overflows(count, size, &bytes))) return no_memory();
  if (bytes <= MID_MAX_BYTES) {
    void *block = opaque_pointer(heap_malloc(bytes));
    return block ? memset(block, 0, bytes) : NULL;
  }
  struct allocation allocation = {.size = bytes, .alignment = 1, .site = site};
  void *block = heap_allocate(&allocation);
  if (block && !allocation.is_zero) big_clear((uintptr_t)block, bytes);
  return block;
}

void *family_zeroed(void *block, const struct allocation *allocation) {
  block = opaque_pointer(block);
  if (block && !allocation->is_zero) big_clear((uintptr_t)block, family_usable_size(block));
  return block;
}

/* ---- realloc ------------------------------------------------------------------------------------------ */

static bool is_range(size_t size) { return size > MID_MAX_BYTES; }

/* A block that moves does not go to the heap in use, whose blocks may be freed all at once. */
NOINLINE static void *malloc_target(size_t size, uint32_t site, bool is_growing) {
  struct allocation allocation = {
      .size = size, .alignment = 1, .site = site, .is_growing = is_growing, .is_own = true};
  return is_growing || heap_of_thread->used ? heap_allocate(&allocation)
                                            : family_malloc_site(size, site);
}

/* *target becomes another block, or NULL, where the system has lost it. */
NOINLINE static void *move_pages(void **target, void *block, size_t size, size_t keep_bytes,
                                 uint32_t site) {
  void *moved = heap_move_big(target, block, keep_bytes);
  if (UNLIKELY(!*target)) *target = malloc_target(size, site, false);
  return moved;
}

RESIDENT static void *move(void *block, size_t size, size_t keep_bytes, uint32_t site) {
  bool is_growing = size > keep_bytes && is_range(keep_bytes) && size > ROOMY_MIN_BYTES;
  bool is_other = is_growing || UNLIKELY(heap_of_thread->is_armed);
  int errno_before = errno;
  void *target = is_other ? malloc_target(size, site, is_growing) : family_malloc_site(size, site);
  void *moved = target && keep_bytes >= MOVE_PAGES_MIN_BYTES
                    ? move_pages(&target, block, size, keep_bytes, site)
                    : NULL;
  if (UNLIKELY(!target)) return size == keep_bytes ? heap_keep(block, size, errno_before) : NULL;
  if (!moved) moved = memcpy(target, block, keep_bytes);
  heap_free(block);
  return moved;
}

NOINLINE static void *realloc_sample(void *block, size_t size, size_t usable_bytes, uint32_t site) {
  if (heap_shrinks_in_place(size, usable_bytes)) return sampling_note_kept(block, size);
  return move(block, size, size < usable_bytes ? size : usable_bytes, site);
}

NOINLINE static void *realloc_named(void *block, size_t size, size_t usable_bytes, uint32_t site) {
  bool is_checked = options.harden; /* the requested size is known, and changes */
  if (is_checked) heap_become_mallocs(block);
  if (is_checked ? size == usable_bytes : heap_shrinks_in_place(size, usable_bytes))
    return sampling_note_kept(block, size);
  bool may_resize = is_checked || (is_range(usable_bytes) && is_range(size));
  if (may_resize && heap_resize(block, size)) return block;
  return heap_named_move(block, size, size < usable_bytes ? size : usable_bytes, site);
}

/* An address without a block (reported already) is left alone. */
COLD static void *realloc_other(void *block, size_t size, enum block_kind kind) {
  if (kind == BLOCK_FOREIGN) return os_libc_malloc()->realloc(block, size);
  errno = EINVAL;
  return NULL;
}

RESIDENT void *family_realloc(void *block, size_t size, uint32_t site) {
  if (!block) return family_malloc_site(size, site);
  if (UNLIKELY(size == 0)) {
    heap_free(block);
    return NULL;
  }
  if (UNLIKELY(size > REQUEST_MAX_BYTES)) return no_memory();
  size_t usable_bytes;
  enum block_kind kind = heap_ask(block, "realloc", &usable_bytes);
  if (UNLIKELY(kind == BLOCK_SAMPLE)) return realloc_sample(block, size, usable_bytes, site);
  if (UNLIKELY(kind == BLOCK_NAMED)) return realloc_named(block, size, usable_bytes, site);
  if (UNLIKELY(kind != BLOCK_OWN)) return realloc_other(block, size, kind);
  bool is_noted = options.harden; /* the requested size is known, and changes */
  if (UNLIKELY(is_noted)) heap_become_mallocs(block);
  if (size == usable_bytes || (!is_noted && heap_shrinks_in_place(size, usable_bytes))) {
    return is_range(usable_bytes) ? sampling_note_kept(block, size) : block;
  }
  bool may_resize = is_noted || (is_range(usable_bytes) && is_range(size));
  if (may_resize && heap_resize(block, size)) return block;
  return move(block, size, size < usable_bytes ? size : usable_bytes, site);
}

RESIDENT void *family_reallocarray(void *block, size_t count, size_t size, uint32_t site) {
  size_t bytes;
  if (UNLIKELY(multiply_overflows(count, size, &bytes))) return no_memory();
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

/* ---- alignment ------------------------------------------------------------------------------------------ */

RESIDENT void *family_aligned_alloc(size_t alignment, size_t size, uint32_t site) {
  if (UNLIKELY(!is_power_of_two(alignment))) {
    errno = EINVAL;
    return NULL;
  }
  return heap_aligned(alignment, size, site);
}

/* As in glibc: an alignment is rounded up to a power of two, and invalid above the largest. */
void *family_memalign(size_t alignment, size_t size, uint32_t site) {
  if (UNLIKELY(alignment > SIZE_MAX / 2 + 1)) {
    errno = EINVAL;
    return NULL;
  }
  return heap_aligned(power_of_two_at_least(alignment), size, site);
}

RESIDENT int family_posix_memalign(void **out, size_t alignment, size_t size, uint32_t site) {
  if (UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void *))) return EINVAL;
  void *block = heap_aligned(alignment, size, site);
  if (UNLIKELY(!block))
    return ENOMEM; /* and in errno, where glibc leaves it, and programs read it */
  *out = block;
  return 0;
}

void *family_valloc(size_t size, uint32_t site) {
  return heap_aligned(os_page_bytes(), size, site);
}

void *family_pvalloc(size_t size, uint32_t site) {
  size_t page_bytes = os_page_bytes();
  if (UNLIKELY(size > REQUEST_MAX_BYTES - page_bytes)) return no_memory();
  size_t pages_bytes = round_up(size, page_bytes);
  return heap_aligned(page_bytes, pages_bytes ? pages_bytes : page_bytes, site);
}

void *family_aligned_calloc(size_t alignment, size_t bytes, uint32_t site) {
  if (UNLIKELY(!is_power_of_two(alignment))) {
    errno = EINVAL;
    return NULL;
  }
  struct allocation allocation = {.size = bytes, .alignment = alignment, .site = site};
  void *block = opaque_pointer(heap_allocate(&allocation));
  if (block && !allocation.is_zero) big_clear((uintptr_t)block, bytes);
  return block;
}

/* ---- questions ------------------------------------------------------------------------------------------ */

NOINLINE static size_t ask_usable_size(const void *block) {
  size_t usable_bytes;
  enum block_kind kind = block ? heap_ask(block, "malloc_usable_size", &usable_bytes) : BLOCK_NONE;
  if (LIKELY(kind >= BLOCK_OWN)) return usable_bytes;
  return kind == BLOCK_FOREIGN ? os_libc_malloc()->usable_size((void *)(uintptr_t)block) : 0;
}

RESIDENT size_t family_usable_size(const void *block) {
  size_t usable_bytes;
  return LIKELY(heap_ask_quickly(block, &usable_bytes)) ? usable_bytes : ask_usable_size(block);
}
