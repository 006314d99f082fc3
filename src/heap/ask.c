#include "heap/ask.h"

#include "checked/checked.h"
#include "config/limits.h"
#include "config/options.h"
#include "foreign/pointer.h"
#include "hardened/nothing.h"
#include "ranges/big.h"
#include "ranges/large.h"
#include "slab/slab.h"

enum kind kind_elsewhere(uintptr_t address) {
  if (is_in_window(address)) return KIND_none;
  return nothing_covers(address) ? KIND_nothing : KIND_foreign;
}

/* Freed by this thread as the last block of its class. */
static bool was_just_freed(uint32_t entry, const void *block) {
  const struct heap *heap = heap_of_thread;
  unsigned class = map_threads_class(entry); /* also while the heap is diverted */
  return class < SLAB_CLASS_COUNT && magazine_ends_with(&heap->magazines[class], block);
}

size_t heap_block_bytes(size_t size, size_t alignment) {
  return large_is_big(size, alignment) ? big_good_bytes(size)
                                       : class_bytes(class_of_aligned(size, alignment));
}

size_t heap_good_bytes(size_t size, size_t alignment) {
  size_t bytes = heap_block_bytes(size, alignment);
  bool is_cut =
      window.hardened_bit || options.guard || (limits.hard_bytes && bytes > MID_MAX_BYTES);
  return is_cut ? size : bytes;
}

/* ---- a block's usable bytes, by its kind; false after a report ------------------------------- */

static bool ask_none(uintptr_t address, uint32_t entry, const char *verb, size_t *usable_bytes) {
  (void)entry, (void)usable_bytes;
  pointer_fail(verb, address);
  return false;
}

static bool ask_foreign(uintptr_t address, uint32_t entry, const char *verb, size_t *usable_bytes) {
  const struct os_libc_malloc *libc = os_libc_malloc();
  if (!libc->free || !pointer_is_libc_block(address))
    return ask_none(address, entry, verb, usable_bytes);
  *usable_bytes = libc->usable_size((void *)address); /* NOLINT(performance-no-int-to-ptr) */
  return true;
}

static bool ask_nothing(uintptr_t address, uint32_t entry, const char *verb, size_t *usable_bytes) {
  (void)entry;
  *usable_bytes = 0;
  return nothing_check(address, verb, false);
}

static bool ask_named_slab(uintptr_t address, uint32_t entry, const char *verb,
                           size_t *usable_bytes) {
  *usable_bytes = class_bytes(map_slab_class(entry));
  return slab_index_of(slab_of_block(address), address, verb) != NO_BLOCK;
}

/* Mostly without the slab's record. */
INLINE bool ask_slab(uintptr_t address, uint32_t entry, const char *verb, size_t *usable_bytes) {
  unsigned class = map_slab_class(entry);
  if (UNLIKELY(was_just_freed(entry, (const void *)address))) /* NOLINT */
    return ask_none(address, entry, verb, usable_bytes);
  if (UNLIKELY(!slab_block_starts_at(&slab_starts[class], address % GRANULE_BYTES)))
    return ask_named_slab(address, entry, verb, usable_bytes);
  *usable_bytes = class_bytes(class);
  return true;
}

/* The program may use the bytes that a hard limit counts, not more, even of a range that is counted
 * whole: a resize may fail. */
static bool ask_range(uintptr_t address, uint32_t entry, const char *verb, size_t *usable_bytes) {
  if (UNLIKELY(!range_block_begins_at(address)))
    return ask_none(address, entry, verb, usable_bytes);
  const struct range_info *info = range_info(granule_of(address));
  *usable_bytes = heap_range_bytes(address, entry);
  if (LIKELY(!info->uncounted)) return true;
  size_t counted_bytes =
      ((size_t)info->granules << GRANULE_SHIFT) - range_uncounted_bytes(info) - info->colour_bytes;
  if (counted_bytes < *usable_bytes) *usable_bytes = counted_bytes;
  return true;
}

INLINE enum kind ask_as(enum kind which, uintptr_t address, uint32_t entry, const char *verb,
                        size_t *usable_bytes) {
  switch (which) {
#define KIND(kind, free, ask, resize) \
  case kind: return ask(address, entry, verb, usable_bytes) ? which : KIND_none;
    KINDS /* NOLINT(bugprone-branch-clone): rows that are served alike */
#undef KIND
  }
  return KIND_none;
}

NOINLINE static enum kind ask_elsewhere(uintptr_t address, const char *verb, size_t *usable_bytes) {
  return ask_as(kind_elsewhere(address), address, 0, verb, usable_bytes);
}

RESIDENT enum kind heap_ask(const void *block, const char *verb, size_t *usable_bytes) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  enum kind kind = kind_of_entry(entry);
  if (UNLIKELY(kind == KIND_none)) return ask_elsewhere((uintptr_t)block, verb, usable_bytes);
  return ask_as(kind, (uintptr_t)block, entry, verb, usable_bytes);
}

/* Reads the maps alone: another thread may be freeing the block, and its slab change its owner. */
bool heap_owns(const void *address) {
  size_t granule = granule_of((uintptr_t)address);
  if (granule >= load_relaxed(&window.granule_count)) return nothing_covers((uintptr_t)address);
  uintptr_t metadata = (uintptr_t)chunk_metadata(granule / GRANULES_PER_CHUNK);
  bool is_superslab = metadata && !(metadata & CHUNK_IS_RANGES);
  return is_superslab ? map_entry_is_live(owner_map_entry((uintptr_t)address))
                      : range_covering(granule, SIZE_MAX) != NO_GRANULE;
}
