/* kinds.h: the kinds of blocks, and the functions that serve each: one table, which free, realloc
 * and all questions go through.
 *
 * The entry in the owner map tells the kind of a block in the window (map/window.h): its class, and
 * the tag of a heap and the bit of hardened mode, which divert free's fast path. An
 * address outside the window is one of malloc(0) (hardened/nothing.h), or the C library's block. */
#ifndef HAK_HEAP_KINDS_H
#define HAK_HEAP_KINDS_H

#include "map/window.h"

/* KIND(kind, free, ask, resize), under its sentence, which docs/ARCHITECTURE.md prints: the
 * functions that free it (free.c), that tell its usable bytes or report an address where no block
 * begins (ask.c), and that resize it in place (reallocate.c).  From KIND_hardened_named_slab on a
 * kind knows the bytes that were requested. */
/* clang-format off */
#define KINDS                                                                                     \
  /* no block begins there: a fault */                                                            \
  KIND(KIND_none, free_none, ask_none, resize_never)                                              \
  /* outside the window: the C library's block, if there is one */                                \
  KIND(KIND_foreign, free_foreign, ask_foreign, resize_never)                                     \
  /* a slab class, of any thread's slab: goes into the freeing thread's magazine */               \
  KIND(KIND_slab, free_slab, ask_slab, resize_never)                                              \
  /* a Large class: goes into the freeing thread's magazine of ranges */                          \
  KIND(KIND_large, free_large, ask_range, resize_range)                                           \
  /* above the Large classes: a range that splits and merges */                                   \
  KIND(KIND_big, free_range, ask_range, resize_range)                                             \
  /* of a named heap, in one of its slabs */                                                      \
  KIND(KIND_named_slab, heap_named_free_slab, ask_named_slab, resize_never)                       \
  /* of a named heap, a range of any size */                                                      \
  KIND(KIND_named_range, heap_named_free_range, ask_range, resize_range)                          \
  /* hardened mode: of a named heap's slab, with slack and trailer */                             \
  KIND(KIND_hardened_named_slab, heap_named_free_hardened, checked_ask, resize_hardened)          \
  /* hardened mode: a named heap's range, with slack */                                           \
  KIND(KIND_hardened_named_range, heap_named_free_range, checked_ask, resize_hardened)            \
  /* hardened mode: of the slab of the heap in its entry, with slack and trailer */               \
  KIND(KIND_hardened_slab, free_hardened_slab, checked_ask, resize_hardened)                      \
  /* between closed pages: in hardened mode a range of any size, in any mode a guarded block */    \
  KIND(KIND_hardened_range, free_hardened_range, checked_ask, resize_hardened)                    \
  /* hardened mode: malloc(0), an address without memory (hardened/nothing.h) */                  \
  KIND(KIND_nothing, free_nothing, ask_nothing, resize_never)
/* clang-format on */

enum kind {
#define KIND(kind, free, ask, resize) kind,
  KINDS
#undef KIND
};

INLINE bool kind_knows_request(enum kind kind) { return kind >= KIND_hardened_named_slab; }

/* The kind of a block whose granule has this entry. */
INLINE enum kind kind_of_entry(uint32_t entry) {
  bool is_slab = map_slab_class(entry) < SLAB_CLASS_COUNT, is_hardened = entry & MAP_HARDENED;
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
