/* remote_buffer.h: blocks of other heaps' slabs that this thread freed, held back for a moment so that those
 * of one bitmap word go home in one atomic OR.
 *
 * A block is a bit in an open word.  A word has one place in the remote-free buffer; when the block of another word
 * wants the place, the older one goes home. */
#ifndef HAK_HEAP_REMOTE_BUFFER_H
#define HAK_HEAP_REMOTE_BUFFER_H

#include "heap/heap.h"
#include "slab/slab.h"

/* The word of the bitmaps that has a block's bit, and the bit. */
struct remote_buffer_place {
  struct slab *slab;
  unsigned word;
  uint64_t bit;
};

INLINE struct remote_buffer_place remote_buffer_place_at(struct slab *slab, unsigned index) {
  return (struct remote_buffer_place){
      .slab = slab, .word = index / 64, .bit = UINT64_C(1) << index % 64};
}

/* Where in the remote-free buffer: neighbouring slabs, and words of one slab, do not meet. */
INLINE struct remote_buffer_word *remote_buffer_word_of(const struct heap *heap, uintptr_t block,
                                                        unsigned word) {
  enum { GRANULE_STRIDE = 5 };
  return &heap->remote_buffer[(granule_of(block) * GRANULE_STRIDE + word) % REMOTE_BUFFER_WORDS];
}

INLINE bool remote_buffer_word_is_open(const struct remote_buffer_word *open,
                                       struct remote_buffer_place place) {
  return open->slab == place.slab && open->word == place.word;
}
/* A bit that is open already is a double free. */
INLINE bool remote_buffer_word_has(const struct remote_buffer_word *open,
                                   struct remote_buffer_place place) {
  return remote_buffer_word_is_open(open, place) && open->bits & place.bit;
}
INLINE bool remote_buffer_word_takes(const struct remote_buffer_word *open,
                                     struct remote_buffer_place place) {
  return remote_buffer_word_is_open(open, place) && !(open->bits & place.bit);
}

/* The bit comes last: a forked child may find a thread cut off in between. */
INLINE void remote_buffer_put(struct heap *heap, struct remote_buffer_word *open,
                              struct remote_buffer_place place) {
  heap->remote_buffer_count++;
  heap->remote_buffer_bytes += place.slab->block_bytes;
  keep_store_order();
  open->bits |= place.bit;
}

/* Adds a Tiny block when its word is open: nothing to send home.  False, and nothing done, when it is not
 * so, or when something is wrong with the block.  The first block, and the last before the remote-free buffer is emptied, are left to
 * remote_buffer_add.  Needs no heap_enter; the constant heaps refuse. */
INLINE bool remote_buffer_try_add(struct heap *heap, uintptr_t block) {
  if (UNLIKELY(!heap->remote_buffer)) return false;       /* the constant heaps never have one */
  struct slab *slab = slab_of_granule(granule_of(block)); /* Tiny slabs have one */
  unsigned index;
  if (UNLIKELY(!slab_has_block(slab, block, &index))) return false;
  struct remote_buffer_place place = remote_buffer_place_at(slab, index);
  struct remote_buffer_word *open = remote_buffer_word_of(heap, block, place.word);
  if (UNLIKELY(!remote_buffer_word_takes(open, place) ||
               heap->remote_buffer_count - 1 >= REMOTE_BUFFER_MAX_BLOCKS - 2 ||
               heap->remote_buffer_bytes >= REMOTE_BUFFER_MAX_BYTES - TINY_MAX_BYTES))
    return false;
  remote_buffer_put(heap, open, place);
  return true;
}

/* Adds a Tiny block; true when that made it send everything home. */
bool remote_buffer_add(struct heap *heap, uintptr_t block);
/* Whether a Tiny block waits in the remote-free buffer, or has gone home and waits there. */
bool remote_buffer_had(const struct heap *heap, uintptr_t block);
/* Sends everything home. */
void remote_buffer_empty(struct heap *heap);

#endif
