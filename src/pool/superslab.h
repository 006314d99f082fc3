/* superslab.h: SuperSlabs, their slots, and what is known of each slab.
 *
 *   SuperSlab   one chunk of 2 MiB, aligned, cut into 32 slots of 64 KiB
 *   slab        1, 2 or 4 neighbouring slots that hold blocks of one size class
 *   record      `struct slab`, apart from the data: in a chunk whose first and last 128 KiB are unmapped (map/window.h), so
 *               a write beyond a block's ends, on and on, meets those, and never a record
 *
 * Slot states, kept in the record of the slab's first slot:
 *
 *      UNUSED ──acquire_slab──▶ ACTIVE ──release_slab──▶ EMPTY ──acquire_slab──▶ ACTIVE
 *         ▲                                                │
 *         └────────────── by age, or when the class keeps enough ──┘
 *
 * A slot changes state only in the hands of its one holder: the thread that cleared its bit in `unused`, popped it
 * from a stack, or owns it.  The class is written before the state is published.  Records are never
 * moved or given back.
 *
 * A slab's blocks are bits.  `local` belongs to the owner, `remote` is set by other threads:
 *
 *   law:  free_local == bits in local;  local & remote == 0;  all from handed_out on are set in local
 *         free_local + bits in remote + live blocks + blocks in magazines and remote-free buffers == capacity
 *         all blocks in waiting_pages and given_pages are set in local; waiting_pages & given_pages == 0 */
#ifndef HAK_POOL_SUPERSLAB_H
#define HAK_POOL_SUPERSLAB_H

#include "base/atomic.h"
#include "map/huge.h"
#include "map/window.h"

#define SLOTS_PER_SUPERSLAB GRANULES_PER_CHUNK
#define ALL_SLOTS UINT32_MAX
/* Hardened mode leaves every second mebibyte closed: nothing lies one mebibyte away from a block. */
#define LOWER_SLOTS (ALL_SLOTS >> SLOTS_PER_SUPERSLAB / 2)

/* Bitmaps of up to this many words lie in the record; the four smallest classes need more. */
enum { INLINE_WORDS = 16, WIDE_WORDS = (int)(GRANULE_BYTES / 8 / 64) };

/* Hardened mode: a bit for every 16 bytes of a SuperSlab's lower half, set where a live block begins.  Its blocks have
 * 16 bytes at least, so the address alone tells the bit. */
enum { LIVE_UNIT_BYTES = 16, LIVE_WORDS = (int)(CHUNK_BYTES / 2 / LIVE_UNIT_BYTES / 64) };

enum slot_state { SLOT_UNUSED, SLOT_ACTIVE, SLOT_EMPTY };

struct owner; /* src/slab: a heap as its slabs see it */

struct slab {
  /* Constant while ACTIVE, read by every thread that frees into the slab. */
  CACHE_ALIGNED ATOMIC(struct owner *) owner; /* NULL while in the pool */
  uintptr_t base;                             /* address of block 0 */
  ATOMIC(uint64_t) *remote;                   /* blocks freed by other threads, not yet collected */
  uint32_t block_bytes;                       /* this and the next: as in the class's shape */
  uint16_t capacity;
  uint8_t class;
  uint8_t word_count;
  uint8_t slot_count;
  ATOMIC(uint8_t) state; /* enum slot_state */

  /* Written by the owner only, under its latch. */
  CACHE_ALIGNED struct slab *next; /* in the owner's partial list */
  struct slab *previous;
  uint64_t *local; /* free blocks, as the owner knows them */
  uint16_t free_local;
  uint16_t handed_out; /* blocks from this one on are fresh: not taken since the slab was made */
  uint8_t first_word;  /* no bit of local is set below this word */
  bool is_listed;      /* in the partial list */
  bool has_free_pages; /* waiting_pages | given_pages, told where slab_take looks anyway */
  uint64_t inline_local[INLINE_WORDS];
  uint64_t waiting_pages; /* bit per system page: to be given back when they are old enough */
  uint64_t given_pages; /* given back, or refused by the system, and no block of them taken since */
  uint32_t waiting_since_ms;

  /* Written by any thread. */
  CACHE_ALIGNED ATOMIC(uint32_t) queued; /* 1: somebody holds the right to queue or release it */
  ATOMIC(uint32_t) link;                 /* in the EMPTY stack of its class */
  ATOMIC(struct slab *) pending_next;    /* in an owner's pending queue */
  uint64_t edge_ns;                      /* when it was queued, for Route P */
  ATOMIC(uint32_t) stamp_ms;             /* when it was released; purge looks before it holds */
  ATOMIC(uint64_t) inline_remote[INLINE_WORDS];
};

/* Touched by the smallest classes only; the local ones of four neighbouring slots share a page. */
enum { WIDE_ALIGNMENT = 4096 };
struct wide_bitmaps {
  uint64_t local[SLOTS_PER_SUPERSLAB][WIDE_WORDS];
  ATOMIC(uint64_t) remote[SLOTS_PER_SUPERSLAB][WIDE_WORDS];
};

struct superslab {
  size_t chunk;
  ATOMIC(uint32_t) unused;      /* bit set: the slot is UNUSED and anybody may take it */
  ATOMIC(uint32_t) dirty;       /* bit set: an UNUSED slot whose pages may be resident */
  ATOMIC(uint32_t) purged;      /* bit set: the slot's pages were given back and not used since */
  ATOMIC(uint32_t) link;        /* in the LRU or the stack of clean SuperSlabs */
  uint32_t stamp_ms;            /* when it became wholly free */
  bool is_mapped;               /* false: its address space was given back */
  ATOMIC(bool) may_be_huge;     /* all its pages are resident, or will be soon (map/huge.h) */
  struct superslab *next_spare; /* of a record without a chunk */
  ATOMIC(uint64_t) *live;       /* in hardened mode LIVE_WORDS, else NULL */
  struct slab slabs[SLOTS_PER_SUPERSLAB];
  char wide_room[sizeof(struct wide_bitmaps) + WIDE_ALIGNMENT];
};

/* The chunk map's pointer to a range chunk carries this bit, a SuperSlab's does not. */
#define CHUNK_IS_RANGES ((uintptr_t)1)

INLINE struct wide_bitmaps *superslab_wide(struct superslab *superslab) {
  return (struct wide_bitmaps *)round_up((uintptr_t)superslab->wide_room,
                                         WIDE_ALIGNMENT); /* NOLINT */
}

/* Before a part of its pages is given back. */
INLINE void superslab_refuse_huge(struct superslab *superslab) {
  if (UNLIKELY(load_relaxed(&superslab->may_be_huge)))
    huge_refuse(superslab->chunk, &superslab->may_be_huge);
}

/* The SuperSlab of a chunk that is one. */
INLINE struct superslab *superslab_of_chunk(size_t chunk) {
  ASSERT(!((uintptr_t)chunk_metadata(chunk) & CHUNK_IS_RANGES));
  return chunk_metadata(chunk);
}

INLINE struct slab *slab_of_granule(size_t granule) {
  struct superslab *superslab = superslab_of_chunk(granule / GRANULES_PER_CHUNK);
  return &superslab->slabs[granule % GRANULES_PER_CHUNK];
}

/* Where the bitmaps of a slab of this shape lie: with many blocks apart, so that all others stay compact.  Its
 * record's pointers, known without it. */
INLINE uint64_t *slab_local_bits(struct superslab *superslab, unsigned slot,
                                 const struct slab_shape *shape) {
  return shape->word_count > INLINE_WORDS ? superslab_wide(superslab)->local[slot]
                                          : superslab->slabs[slot].inline_local;
}
INLINE ATOMIC(uint64_t) *slab_remote_bits(struct superslab *superslab, unsigned slot,
                                          const struct slab_shape *shape) {
  return shape->word_count > INLINE_WORDS ? superslab_wide(superslab)->remote[slot]
                                          : superslab->slabs[slot].inline_remote;
}

/* The slab of a block in a granule whose map entry names a slab class.  Records of a slab's later
 * slots only know where it begins. */
INLINE struct slab *slab_of_block(uintptr_t block) {
  struct slab *slab = slab_of_granule(granule_of(block));
  return slab - ((block - slab->base) >> GRANULE_SHIFT);
}

#endif
