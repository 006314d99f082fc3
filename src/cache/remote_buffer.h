/* remote_buffer.h: blocks of other heaps' slabs that this thread freed, held back for a moment so that those
 * of one bitmap word go home in one atomic OR.
 *
 * A block is a bit in an open word.  A word has one place in the remote-free buffer; when the block of another word
 * wants the place, the older one goes home. */
#ifndef HAK_CACHE_REMOTE_BUFFER_H
#define HAK_CACHE_REMOTE_BUFFER_H

#include "slab/slab.h"

/* The buffer is emptied at this many blocks or bytes, which bounds the memory held by a thread that sleeps. */
enum { REMOTE_BUFFER_MAX_BLOCKS = 256 };
#define REMOTE_BUFFER_MAX_BYTES ((size_t)64 << 10)

/* Words that may be open at a time.  No sorting: frees mostly come in the order of allocation. */
enum { REMOTE_BUFFER_WORDS = 64 };
struct remote_buffer_word { /* blocks of one bitmap word of a slab, on their way home */
  SHOWN(struct slab *, slab);
  unsigned word;
  SHOWN(uint64_t, bits);
};

struct remote_buffer {
  SHOWN(struct remote_buffer_word *,
        words); /* REMOTE_BUFFER_WORDS of them; NULL until the first block */
  unsigned block_count;
  size_t bytes;
};

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

/* A word's place in the remote-free buffer: neighbouring slabs, and words of one slab, do not collide. */
INLINE struct remote_buffer_word *remote_buffer_word_of(const struct remote_buffer *buffer,
                                                        uintptr_t block, unsigned word) {
  enum { GRANULE_STRIDE = 5 };
  return &buffer->words[(granule_of(block) * GRANULE_STRIDE + word) % REMOTE_BUFFER_WORDS];
}

INLINE bool remote_buffer_word_is_open(const struct remote_buffer_word *open,
                                       struct remote_buffer_place place) {
  return open->slab == place.slab && open->word == place.word;
}
/* A bit that is already open is a double free. */
INLINE bool remote_buffer_word_has(const struct remote_buffer_word *open,
                                   struct remote_buffer_place place) {
  return remote_buffer_word_is_open(open, place) && open->bits & place.bit;
}
INLINE bool remote_buffer_word_takes(const struct remote_buffer_word *open,
                                     struct remote_buffer_place place) {
  return remote_buffer_word_is_open(open, place) && !(open->bits & place.bit);
}

/* Sets the bit last: a forked child may find a thread cut off in between. */
INLINE void remote_buffer_put(struct remote_buffer *buffer, struct remote_buffer_word *open,
                              struct remote_buffer_place place) {
  buffer->block_count++;
  buffer->bytes += place.slab->block_bytes;
  keep_store_order();
  show(open, bits, open->bits | place.bit);
}

/* Adds a Tiny block when its word is open: nothing is sent home. False, and nothing is done, when the word is not open or the block is
 * invalid.  The first block, and the last before the remote-free buffer is emptied, are left to remote_buffer_add.  Needs no
 * heap_enter; the constant heaps refuse. */
INLINE bool remote_buffer_try_add(struct remote_buffer *buffer, uintptr_t block) {
  if (UNLIKELY(!buffer->words)) return false;             /* the constant heaps never have one */
  struct slab *slab = slab_of_granule(granule_of(block)); /* Tiny slabs have one */
  unsigned index;
  if (UNLIKELY(!slab_has_block(slab, block, &index))) return false;
  struct remote_buffer_place place = remote_buffer_place_at(slab, index);
  struct remote_buffer_word *open = remote_buffer_word_of(buffer, block, place.word);
  if (UNLIKELY(!remote_buffer_word_takes(open, place) ||
               buffer->block_count - 1 >= REMOTE_BUFFER_MAX_BLOCKS - 2 ||
               buffer->bytes >= REMOTE_BUFFER_MAX_BYTES - TINY_MAX_BYTES))
    return false;
  remote_buffer_put(buffer, open, place);
  return true;
}

/* The law: no more bits are open than blocks were counted since it was emptied, in words that have a slab. */
bool remote_buffer_is_valid(const struct remote_buffer *buffer);

/* Adds a Tiny block, or sends it home alone; true when it was sent, or when the buffer is full now. */
bool remote_buffer_add(struct remote_buffer *buffer, uintptr_t block, struct counters *counters);
INLINE bool remote_buffer_is_full(const struct remote_buffer *buffer) {
  return buffer->block_count >= REMOTE_BUFFER_MAX_BLOCKS ||
         buffer->bytes >= REMOTE_BUFFER_MAX_BYTES;
}
/* Whether a Tiny block waits in the buffer, or was sent home and waits in its slab. */
bool remote_buffer_had(const struct remote_buffer *buffer, uintptr_t block);
/* Sends everything home. */
void remote_buffer_empty(struct remote_buffer *buffer, struct counters *counters);

#endif
