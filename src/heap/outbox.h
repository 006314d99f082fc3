/* outbox.h: blocks of other heaps' slabs that this thread freed, held back for a moment so that those
 * of one bitmap word go home in one atomic OR.
 *
 * A block is a bit in an open word.  A word has one place in the outbox; when the block of another word
 * wants the place, the older one goes home. */
#ifndef HAK_HEAP_OUTBOX_H
#define HAK_HEAP_OUTBOX_H

#include "heap/heap.h"
#include "slab/slab.h"

/* The word of the bitmaps that has a block's bit, and the bit. */
struct outbox_place {
  struct slab *slab;
  unsigned word;
  uint64_t bit;
};

INLINE struct outbox_place outbox_place_at(struct slab *slab, unsigned index) {
  return (struct outbox_place){.slab = slab, .word = index / 64, .bit = UINT64_C(1) << index % 64};
}

/* Where in the outbox: neighbouring slabs, and words of one slab, do not meet. */
INLINE struct outbox_word *outbox_word_of(const struct heap *heap, uintptr_t block, unsigned word) {
  enum { GRANULE_STRIDE = 5 };
  return &heap->outbox[(granule_of(block) * GRANULE_STRIDE + word) % OUTBOX_WORDS];
}

INLINE bool outbox_word_is_open(const struct outbox_word *open, struct outbox_place place) {
  return open->slab == place.slab && open->word == place.word;
}
/* A bit that is open already is a double free. */
INLINE bool outbox_word_has(const struct outbox_word *open, struct outbox_place place) {
  return outbox_word_is_open(open, place) && open->bits & place.bit;
}
INLINE bool outbox_word_takes(const struct outbox_word *open, struct outbox_place place) {
  return outbox_word_is_open(open, place) && !(open->bits & place.bit);
}

/* The bit comes last: a forked child may find a thread cut off in between. */
INLINE void outbox_put(struct heap *heap, struct outbox_word *open, struct outbox_place place) {
  heap->outbox_count++;
  heap->outbox_bytes += place.slab->block_bytes;
  keep_store_order();
  open->bits |= place.bit;
}

/* Adds a Tiny block when its word is open: nothing to send home.  False, and nothing done, when it is not
 * so, or when something is wrong with the block.  The first block, and the last before the outbox is emptied, are left to
 * outbox_add.  Needs no heap_enter; the constant heaps refuse. */
INLINE bool outbox_try_add(struct heap *heap, uintptr_t block) {
  if (UNLIKELY(!heap->outbox)) return false;              /* the constant heaps never have one */
  struct slab *slab = slab_of_granule(granule_of(block)); /* Tiny slabs have one */
  unsigned index;
  if (UNLIKELY(!slab_has_block(slab, block, &index))) return false;
  struct outbox_place place = outbox_place_at(slab, index);
  struct outbox_word *open = outbox_word_of(heap, block, place.word);
  if (UNLIKELY(!outbox_word_takes(open, place) || heap->outbox_count - 1 >= OUTBOX_MAX_BLOCKS - 2 ||
               heap->outbox_bytes >= OUTBOX_MAX_BYTES - TINY_MAX_BYTES))
    return false;
  outbox_put(heap, open, place);
  return true;
}

/* Adds a Tiny block; true when that made it send everything home. */
bool outbox_add(struct heap *heap, uintptr_t block);
/* Whether a Tiny block waits in the outbox, or has gone home and waits there. */
bool outbox_had(const struct heap *heap, uintptr_t block);
/* Sends everything home. */
void outbox_empty(struct heap *heap);

#endif
