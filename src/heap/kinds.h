/* kinds.h: the kinds of blocks, and the functions that serve each: one table, which free, realloc and all questions go through.
 *
 * The entry in the owner map tells the kind of a block in the window (map/window.h): its class, and the tag of a heap and the bit
 * of hardened mode, which divert free's fast path. Blocks outside the window lie in regions of their own, or are the C library's. */
#ifndef HAK_HEAP_KINDS_H
#define HAK_HEAP_KINDS_H

#include "map/window.h"

/* The suffixes of the functions that serve each kind: free_… (free.c); ask_… (ask.c), for the usable bytes, which reports an address where
 * no block begins; resize_… (reallocate.c), in place. From hardened_named_slab on a kind knows the bytes that were requested. */
/* clang-format off */
#define KINDS                                                                                                  \
  /*   kind                  free                 ask         resize */                                        \
  KIND(none,                 none,                none,       never)          /* no block begins there */      \
  KIND(foreign,              foreign,             foreign,    never)          /* the C library's, if any */    \
  KIND(guarded,              guarded,             guarded,    never)          /* guard/guarded.h */            \
  KIND(slab,                 slab,                slab,       never)          /* for magazines */              \
  KIND(large,                large,               range,      range)          /* for magazines of ranges */    \
  KIND(big,                  range,               range,      range)                                           \
  KIND(named_slab,           named_slab,          named_slab, never)                                           \
  KIND(named_range,          named_range,         range,      range)                                           \
  KIND(hardened_named_slab,  hardened_named_slab, hardened,   hardened)                                        \
  KIND(hardened_named_range, named_range,         hardened,   hardened)                                        \
  KIND(hardened_slab,        hardened_slab,       hardened,   hardened)                                        \
  KIND(hardened_range,       hardened_range,      hardened,   hardened)                                        \
  KIND(hardened_guarded,     guarded,             guarded,    never)                                           \
  KIND(nothing,              nothing,             nothing,    never)          /* malloc(0) in hardened mode */
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
