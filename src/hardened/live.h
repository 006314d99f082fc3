/* live.h: which blocks of slabs live, in hardened mode: a bit for each, in a record apart (pool/superslab.h).
 *
 *   malloc   the bit is set, then the trailer is written
 *   free     the trailer is looked at, the block is wiped, then the bit is cleared
 *
 *   law: a block whose bit is clear reads as zero (at HAKMEM_HARDEN=1 a large one at its ends: WIPED_WHOLLY_BYTES), whoever
 *        looks; one whose bit is set has a whole trailer, or 0 there while it comes or goes
 *
 * So a thread may look at the blocks beside its own.  What is not zero there may have been taken just now; so it sets
 * the bit itself and looks again before it says anything: then nobody has the block (hardened/beside.c).  A thread that wants that block
 * meanwhile takes another. */
#ifndef HAK_HARDENED_LIVE_H
#define HAK_HARDENED_LIVE_H

#include "os/os.h"
#include "slab/record.h"

/* All words of the block's SuperSlab, and the block's among them. */
INLINE ATOMIC(uint64_t) *live_words(uintptr_t block) {
  return superslab_of_chunk(granule_of(block) / GRANULES_PER_CHUNK)->live;
}
INLINE ATOMIC(uint64_t) *live_word_of(ATOMIC(uint64_t) *words, uintptr_t block) {
  return &words[block % CHUNK_BYTES / LIVE_UNIT_BYTES / 64];
}
INLINE ATOMIC(uint64_t) *live_word(uintptr_t block) {
  return live_word_of(live_words(block), block);
}

INLINE uint64_t live_bit(uintptr_t block) { return UINT64_C(1) << block / LIVE_UNIT_BYTES % 64; }

/* `word` is live_word(block), which callers keep. */
INLINE bool is_live_in(ATOMIC(uint64_t) *word, uintptr_t block) {
  /* acquire: what was done to the block before the bit was changed; pairs with live_begin and live_end. */
  return load_acquire(word) & live_bit(block);
}
INLINE bool is_live(uintptr_t block) { return is_live_in(live_word(block), block); }

/* True for one caller only: the thread that allocates it, or that looks at it.  A process with one thread needs no bus lock. */
INLINE bool live_begin(ATOMIC(uint64_t) *word, uintptr_t block) {
  uint64_t bit = live_bit(block), before = load_relaxed(word);
  if (os_is_multi_threaded())
    before = fetch_or_seq(word, bit); /* acquire would do: what was wiped before live_end */
  else
    store_relaxed(word, before | bit);
  return !(before & bit);
}

/* True for one caller only, however many free the block. */
INLINE bool live_end(ATOMIC(uint64_t) *word, uintptr_t block) {
  uint64_t bit = live_bit(block), before = load_relaxed(word);
  if (os_is_multi_threaded())
    before = fetch_and_seq(word, ~bit); /* release would do: the block was wiped before */
  else
    store_relaxed(word, before & ~bit);
  return before & bit;
}

#endif
