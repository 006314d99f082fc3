/* magazine.h: a thread's stack of free blocks of one class.
 *
 *      base                  top              end
 *       ▼                     ▼                ▼
 *      [ oldest … youngest ] [ room            ]       malloc pops below top, free pushes at top
 *
 * The blocks themselves are never touched: no cache miss on a cold block, nothing for an overflow
 * to corrupt, fresh pages stay untouched.  Law: base <= top <= end; an entry is a block of the
 * class that has no other holder; the word below base can be read; passes and is_sample_due are set
 * only while it is armed.
 *
 * While a class is packed (cache/packing.h), the first `passes` blocks are the batch that malloc
 * takes; those above were freed since. Then, while a profile is on, and while a named heap is in
 * use, base has its highest bit set: the magazine is armed, and looks empty to malloc's fast path,
 * whose calls then all take the slow path (cache/divert.h).  Its thread alone arms it, in slow
 * paths. */
#ifndef HAK_CACHE_MAGAZINE_H
#define HAK_CACHE_MAGAZINE_H

#include "base/atomic.h"
#include "map/size_class.h"

enum magazine_event { MAGAZINE_IDLE, MAGAZINE_REFILLED, MAGAZINE_FLUSHED, MAGAZINE_PACKING };

struct magazine {
  SHOWN(void **, top);
  SHOWN(uintptr_t, tagged_base); /* magazine_base() */
  SHOWN(void **, end);
  uint16_t seen_count;     /* blocks in it at the last look for idleness */
  uint16_t passes;         /* armed: blocks that malloc may pop before it asks the sampler again */
  uint8_t last_event;      /* enum magazine_event */
  uint8_t streak;          /* misses of one kind in a row; packing: batches left */
  ATOMIC(uint8_t) bounces; /* misses after one of the other kind: it was too small */
  bool is_sample_due;      /* armed: the block after those is a sample */
};

enum { MAGAZINE_ARMED_BIT = 63 };
#define MAGAZINE_ARMED ((uintptr_t)1 << MAGAZINE_ARMED_BIT)

INLINE void **magazine_untagged(uintptr_t tagged_base) {
  return (void **)(tagged_base & ~MAGAZINE_ARMED); /* NOLINT: a tagged pointer */
}
INLINE void **magazine_base(const struct magazine *magazine) {
  return magazine_untagged(magazine->tagged_base);
}
/* relaxed: other threads only count */
INLINE void magazine_set_top(struct magazine *magazine, void **top) { show(magazine, top, top); }
INLINE void magazine_set_end(struct magazine *magazine, void **end) { show(magazine, end, end); }
INLINE bool magazine_is_armed(const struct magazine *magazine) {
  return magazine->tagged_base & MAGAZINE_ARMED;
}
/* The armed bit stays as it is. */
INLINE void magazine_set_base(struct magazine *magazine, void **base) {
  show(magazine, tagged_base, (uintptr_t)base | (magazine->tagged_base & MAGAZINE_ARMED));
}
INLINE void magazine_arm(struct magazine *magazine, bool is_armed) {
  show(magazine, tagged_base,
       (uintptr_t)magazine_base(magazine) | (is_armed ? MAGAZINE_ARMED : (uintptr_t)0));
}

INLINE bool magazine_is_packing(const struct magazine *magazine) {
  return magazine->last_event == MAGAZINE_PACKING;
}

/* Pops a block of a lot or a batch, while it is armed; false at its end. A fork in between loses a
 * block, and has none twice. */
INLINE bool magazine_pops_passed(struct magazine *magazine, void **block) {
  void **top = magazine->top;
  unsigned passes = magazine->passes;
  if (UNLIKELY(!passes) || UNLIKELY(top == magazine_base(magazine))) return false;
  magazine->passes = (uint16_t)(passes - 1);
  magazine_set_top(magazine, top - 1);
  *block = top[-1];
  if (UNLIKELY(magazine_is_packing(magazine))) {
    keep_store_order();
    *block = magazine_base(magazine)[passes - 1];
    magazine_base(magazine)[passes - 1] = top[-1];
  }
  return true;
}

INLINE unsigned magazine_count(const struct magazine *magazine) {
  return (unsigned)(magazine->top - magazine_base(magazine));
}
/* For another thread's magazine; 0 while its array is being replaced. */
INLINE unsigned magazine_count_shown(const struct magazine *magazine) {
  void **top = load_relaxed(&magazine->top_shown);
  void **base = magazine_untagged(load_relaxed(&magazine->tagged_base_shown));
  return base <= top && top <= load_relaxed(&magazine->end_shown) ? (unsigned)(top - base) : 0;
}
INLINE unsigned magazine_capacity(const struct magazine *magazine) {
  return (unsigned)(magazine->end - magazine_base(magazine));
}

INLINE bool magazine_is_valid(const struct magazine *magazine) {
  return magazine_base(magazine) <= magazine->top && magazine->top <= magazine->end &&
         magazine->last_event <= MAGAZINE_PACKING &&
         (!magazine_is_packing(magazine) || magazine->passes <= magazine_count(magazine)) &&
         (magazine_is_armed(magazine) || !(magazine->passes || magazine->is_sample_due));
}

/* Whether the block is the youngest: then it is freed twice in a row. Free's fast paths use one
 * compare, which for an empty magazine reads the word below base and may be wrong; slow paths use
 * the exact test. */
INLINE bool magazine_may_end_with(void *const *top, const void *block) { return top[-1] == block; }
INLINE bool magazine_ends_with(const struct magazine *magazine, const void *block) {
  return magazine->top != magazine_base(magazine) && magazine_may_end_with(magazine->top, block);
}

/* Writes the entry before `top`: a forked child may find a thread cut off in between. */
INLINE void magazine_push(struct magazine *magazine, void **top, void *block) {
  *top = block;
  keep_store_order();
  magazine_set_top(magazine, top + 1);
}

/* NULL when it is empty, or its batch at an end. */
INLINE void *magazine_pop(struct magazine *magazine) {
  void *block;
  if (UNLIKELY(magazine_is_packing(magazine)))
    return magazine_pops_passed(magazine, &block) ? block : NULL;
  if (magazine->top == magazine_base(magazine)) return NULL;
  magazine_set_top(magazine, magazine->top - 1);
  return *magazine->top;
}

#endif
