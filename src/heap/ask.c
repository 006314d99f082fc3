#include "heap/ask.h"

#include "checked/checked.h"
#include "config/limits.h"
#include "config/options.h"
#include "foreign/pointer.h"
#include "guard/guarded.h"
#include "hardened/nothing.h"
#include "large/big.h"
#include "large/large.h"
#include "profile/sampled_slabs.h"
#include "slab/slab.h"

static enum block_kind no_block(const char *verb, uintptr_t address) {
  pointer_fail(verb, address);
  return BLOCK_NONE;
}

NOINLINE static enum block_kind ask_outside(uintptr_t address, const char *verb,
                                            size_t *usable_bytes) {
  if (guarded_covers(address))
    return guarded_ask(address, verb, usable_bytes) ? BLOCK_OWN : BLOCK_NONE;
  if (nothing_covers(address)) {
    *usable_bytes = 0;
    return nothing_check(address, verb, false) ? BLOCK_OWN : BLOCK_NONE;
  }
  bool is_libc_block = os_libc_malloc()->free && pointer_is_libc_block(address);
  return is_libc_block ? BLOCK_FOREIGN : no_block(verb, address);
}

/* Freed by this thread as the last block of its class. */
static bool was_just_freed(uint32_t entry, const void *block) {
  const struct heap *heap = heap_of_thread;
  size_t class = heap_class_of(heap, entry);
  return class < SLAB_CLASS_COUNT && magazine_ends_with(&heap->magazines[class], block);
}

size_t heap_range_made_bytes(uintptr_t block, uint32_t entry) {
  return map_entry_is_big(entry) ? big_usable_bytes(block) : class_bytes(entry & MAP_CLASS_MASK);
}

size_t heap_block_bytes(size_t size, size_t alignment) {
  return large_is_big(size, alignment) ? big_good_bytes(size)
                                       : class_bytes(class_of_aligned(size, alignment));
}

size_t heap_good_bytes(size_t size, size_t alignment) {
  size_t bytes = heap_block_bytes(size, alignment);
  bool is_cut = options.harden || options.guard || (limits.hard_bytes && bytes > MID_MAX_BYTES);
  return is_cut ? size : bytes;
}

/* The program may use the bytes that a hard limit counts, and not more even if all of the range is counted: for a resize that fails
 * then. */
static size_t range_usable_bytes(uintptr_t block, uint32_t entry) {
  const struct range_info *info = range_info(granule_of(block));
  size_t made_bytes = heap_range_made_bytes(block, entry);
  if (LIKELY(!info->uncounted)) return made_bytes;
  size_t counted_bytes =
      ((size_t)info->granules << GRANULE_SHIFT) - range_uncounted_bytes(info) - info->colour_bytes;
  return counted_bytes < made_bytes ? counted_bytes : made_bytes;
}

NOINLINE static enum block_kind ask_sampled(uintptr_t address, uint32_t entry, const char *verb,
                                            size_t *usable_bytes) {
  if (!sampled_slabs_has(address)) return no_block(verb, address);
  *usable_bytes = class_bytes(map_slab_class(entry));
  return BLOCK_SAMPLE;
}

NOINLINE static enum block_kind ask_named(uintptr_t address, uint32_t entry, const char *verb,
                                          size_t *usable_bytes) {
  unsigned class = map_slab_class(entry);
  if (options.harden) {
    if (!checked_ask(address, entry, verb, usable_bytes)) return BLOCK_NONE;
  } else if (class < SLAB_CLASS_COUNT) {
    *usable_bytes = class_bytes(class);
    if (slab_index_of(slab_of_block(address), address, verb) == NO_BLOCK) return BLOCK_NONE;
  } else {
    if (!range_block_begins_at(address)) return no_block(verb, address);
    *usable_bytes = range_usable_bytes(address, entry);
  }
  return BLOCK_NAMED;
}

RESIDENT enum block_kind heap_ask(const void *block, const char *verb, size_t *usable_bytes) {
  uintptr_t address = (uintptr_t)block;
  if (!is_in_window(address)) return ask_outside(address, verb, usable_bytes);
  uint32_t entry = owner_map_entry(address);
  unsigned class = entry & MAP_CLASS_MASK;
  if (UNLIKELY(!map_entry_is_live(entry))) return no_block(verb, address);
  if (UNLIKELY(map_entry_is_named(entry))) return ask_named(address, entry, verb, usable_bytes);
  if (UNLIKELY(options.harden))
    return checked_ask(address, entry, verb, usable_bytes) ? BLOCK_OWN : BLOCK_NONE;
  if (UNLIKELY(was_just_freed(entry, block))) return no_block(verb, address);
  if (UNLIKELY(map_entry_is_sampled(entry))) return ask_sampled(address, entry, verb, usable_bytes);
  if (class < SLAB_CLASS_COUNT) {
    *usable_bytes = class_block_bytes[class];
    if (LIKELY(slab_block_starts_at(&slab_starts[class], address % GRANULE_BYTES)))
      return BLOCK_OWN;
    return slab_index_of(slab_of_block(address), address, verb) == NO_BLOCK ? BLOCK_NONE
                                                                            : BLOCK_OWN;
  }
  if (UNLIKELY(!range_block_begins_at(address))) return no_block(verb, address);
  *usable_bytes = range_usable_bytes(address, entry);
  return BLOCK_OWN;
}

/* Reads the maps alone: another thread may be freeing the block, and its slab change its owner. */
bool heap_owns(const void *address) {
  size_t granule = granule_of((uintptr_t)address);
  if (granule >= load_relaxed(&window.granule_count))
    return guarded_covers((uintptr_t)address) || nothing_covers((uintptr_t)address);
  uintptr_t metadata = (uintptr_t)chunk_metadata(granule / GRANULES_PER_CHUNK);
  bool is_superslab = metadata && !(metadata & CHUNK_IS_RANGES);
  return is_superslab ? map_entry_is_live(owner_map_entry((uintptr_t)address))
                      : range_covering(granule) != NO_GRANULE;
}
