/* kinds.h: the kinds of blocks, and the functions that serve each: one table, which free, realloc and all questions go through.
 *
 * The entry in the owner map tells the kind of a block in the window (map/window.h): its class, and the tag of a heap and the bit
 * of hardened mode, which divert free's fast path. Blocks outside the window lie in regions of their own, or are the C library's. */
#ifndef HAK_HEAP_KINDS_H
#define HAK_HEAP_KINDS_H

#include "map/window.h"

/* KIND(kind, free, ask, resize), under its sentence, which docs/ARCHITECTURE.md prints: the suffixes
 * of the functions that serve it: free_… (free.c); ask_… (ask.c), for the usable bytes, which
 * reports an address where no block begins; resize_… (reallocate.c), in place.  From
 * hardened_named_slab on a kind knows the bytes that were requested. */
/* clang-format off */
#define KINDS                                                                                     \
  /* no block begins there: a fault */                                                            \
  KIND(none,                 none,                none,       never)                              \
  /* outside the window: the C library's block, if there is one */                                \
  KIND(foreign,              foreign,             foreign,    never)                              \
  /* between closed pages, outside the window (guard/guarded.h) */                                \
  KIND(guarded,              guarded,             guarded,    never)                              \
  /* a slab class, of any thread's slab: goes into the freeing thread's magazine */               \
  KIND(slab,                 slab,                slab,       never)                              \
  /* a Large class: goes into the freeing thread's magazine of ranges */                          \
  KIND(large,                large,               range,      range)                              \
  /* above the Large classes: a range that splits and merges */                                   \
  KIND(big,                  range,               range,      range)                              \
  /* of a named heap, in one of its slabs */                                                      \
  KIND(named_slab,           named_slab,          named_slab, never)                              \
  /* of a named heap, a range of any size */                                                      \
  KIND(named_range,          named_range,         range,      range)                              \
  /* hardened mode: of a named heap's slab, with slack and trailer */                             \
  KIND(hardened_named_slab,  hardened_named_slab, hardened,   hardened)                           \
  /* hardened mode: a named heap's range, with slack and trailer */                               \
  KIND(hardened_named_range, named_range,         hardened,   hardened)                           \
  /* hardened mode: of the slab of the heap in its entry, with slack and trailer */               \
  KIND(hardened_slab,        hardened_slab,       hardened,   hardened)                           \
  /* hardened mode: a range of any size, with slack and trailer */                                \
  KIND(hardened_range,       hardened_range,      hardened,   hardened)                           \
  /* hardened mode: a guarded block, whose usable size is the requested one */                    \
  KIND(hardened_guarded,     guarded,             guarded,    never)                              \
  /* hardened mode: malloc(0), an address without memory (hardened/nothing.h) */                  \
  KIND(nothing,              nothing,             nothing,    never)
/* clang-format on */

enum kind {
#define KIND(kind, free, ask, resize) KIND_##kind,
  KINDS
#undef KIND
};

INLINE bool kind_knows_request(enum kind kind) { return kind >= KIND_hardened_named_slab; }

/* The kind of a block whose granule has this entry. */
INLINE enum kind kind_of_entry(uint32_t entry) {
  bool is_slab = map_slab_class(entry) < SLAB_CLASS_COUNT, is_hardened = entry & MAP_CLASS_HARDENED;
  if (UNLIKELY(!map_entry_is_live(entry))) return KIND_none;
  if (LIKELY(entry < MAP_TAG_NAMED))
    return UNLIKELY(is_hardened) ? KIND_hardened_slab : LIKELY(is_slab) ? KIND_slab : KIND_large;
  if (UNLIKELY(entry >= MAP_TAG_UNOWNED))
    return UNLIKELY(is_hardened) ? KIND_hardened_range : KIND_big;
  if (UNLIKELY(is_hardened)) return is_slab ? KIND_hardened_named_slab : KIND_hardened_named_range;
  return LIKELY(is_slab) ? KIND_named_slab : KIND_named_range;
}

/* The kind of an address whose entry is not live. */
enum kind kind_elsewhere(uintptr_t address);

#endif
