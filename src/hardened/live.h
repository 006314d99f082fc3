/* live.h: the live blocks of slabs, in hardened mode: a bit for each, in a record apart
 * (pool/superslab.h).
 *
 *   malloc   the bit is set, then the trailer is written
 *   free     the bit is cleared, the trailer is checked, then the block is wiped, the trailer last
 *
 *   law: of threads that free a block at the same moment one finds the bit set, and only that
 *   one touches the block;
 *        a block whose bit is clear reads as zero (at HAKMEM_HARDEN=1 a large one at its ends:
 *        WIPED_WHOLLY_BYTES) for
 *        all threads, or still has its trailer: it is being freed; one whose bit is set has a
 *        whole trailer, or 0 while being made
 *
 * So a thread may check the blocks beside its own.  A block that is not zero may just have been
 * taken; so the thread sets the bit itself and checks again before it reports: then no other thread
 * has the block, unless it has its trailer (hardened/beside.c).  A thread that wants that block
 * meanwhile takes another. */
#ifndef HAK_HARDENED_LIVE_H
#define HAK_HARDENED_LIVE_H

#include "os/os.h"
#include "slab/record.h"

/* All live words of the block's SuperSlab, and the one with the block's bit. */
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
  /* acquire: accesses to the block before the bit was changed; pairs with live_begin and
   * live_end. */
  return load_acquire(word) & live_bit(block);
}
INLINE bool is_live(uintptr_t block) { return is_live_in(live_word(block), block); }

/* True for one caller only: the thread that allocates it, or that checks it.  A process with one
 * thread needs no bus lock: `is_shared` is os_is_multi_threaded(), called where no registers must
 * be saved for it. */
INLINE bool live_begin(ATOMIC(uint64_t) *word, uintptr_t block, bool is_shared) {
  uint64_t bit = live_bit(block);
  /* acquire would do: the wiping before live_end */
  if (is_shared) return !(fetch_or_seq(word, bit) & bit);
  uint64_t before = load_relaxed(word);
  store_relaxed(word, before | bit);
  return !(before & bit);
}

/* True for one of the threads that free the block. */
INLINE bool live_end(ATOMIC(uint64_t) *word, uintptr_t block, bool is_shared) {
  uint64_t bit = live_bit(block);
  /* acquire would do for free; release for a thread that has checked */
  if (is_shared) return fetch_and_seq(word, ~bit) & bit;
  uint64_t before = load_relaxed(word);
  store_relaxed(word, before & ~bit);
  return before & bit;
}

#endif
