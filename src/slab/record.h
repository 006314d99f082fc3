/* record.h: the record of each slab (slab.h has the operations).
 *
 *   slab     1, 2 or 4 neighbouring slots of a SuperSlab that hold blocks of one size class
 *   record   `struct slab`, at its first slot's place in the SuperSlab's record
 *
 * The class is written before the state is published. A slab's blocks are bits. `local` belongs to
 * the owner, `remote` is set by other threads:
 *
 *   law:  free_local == bits in local;  local & remote == 0
 *         all bits from handed_out on are set in local
 *         free_local + bits in remote + live blocks + blocks in magazines == capacity
 *         all blocks in waiting_pages and given_pages are set in local
 *         waiting_pages & given_pages == 0 */
#ifndef HAK_SLAB_RECORD_H
#define HAK_SLAB_RECORD_H

#include "pool/slab_pool.h"

/* Bitmaps of up to this many words lie in the record; the four smallest classes need more. */
enum { INLINE_WORDS = 16, WIDE_WORDS = (int)(GRANULE_BYTES / 8 / 64) };

/* The state of a slab's first slot. An EMPTY slot may have become UNUSED since: the SuperSlab's
 * bits tell. */
enum slot_state { SLOT_UNUSED, SLOT_ACTIVE, SLOT_EMPTY };

struct owner;

struct slab {
  /* Constant while ACTIVE, read by every thread that frees into the slab. */
  CACHE_ALIGNED ATOMIC(struct owner *) owner; /* NULL while in the pool */
  uintptr_t base;                             /* address of block 0 */
  ATOMIC(uint64_t) *remote;                   /* blocks freed by other threads, not yet collected */
  uint32_t block_bytes;                       /* this and the next: as in the class's shape */
  uint16_t capacity;
  SHOWN(uint8_t, class);
  uint8_t word_count;
  uint8_t slot_count;
  ATOMIC(uint8_t) state;                    /* enum slot_state */
  struct slab *next_owned, *previous_owned; /* of a named heap's slabs: owner.h */

  /* Written by the owner only, under its latch. */
  CACHE_ALIGNED struct slab *next; /* in the owner's partial list */
  struct slab *previous;           /* of the first: the last */
  uint64_t *local;                 /* free blocks, as the owner knows them */
  SHOWN(uint16_t, free_local);
  SHOWN(uint16_t, handed_out); /* blocks from this one on are fresh: not taken since the slab was
                                  made */
  ATOMIC(uint32_t) held_by;    /* owner's tag and class, or 0: a copy, as a flush reads this line */
  uint8_t first_word;          /* no bit of local is set below this word */
  bool is_listed;              /* in the partial list */
  bool has_free_pages; /* waiting_pages | given_pages, on a line that slab_take reads anyway */
  uint64_t inline_local[INLINE_WORDS];
  uint64_t waiting_pages;       /* bit per system page: to be given back when old enough */
  SHOWN(uint64_t, given_pages); /* given back or refused by the system, and not in use since */
  uint32_t waiting_since_ms;

  /* Written by any thread. */
  CACHE_ALIGNED ATOMIC(uint32_t) queued; /* 1: a thread holds the right to queue or release it */
  ATOMIC(struct slab *) pending_next;    /* in an owner's pending queue */
  uint64_t edge_ns;                      /* when it was queued, for Route P */
  ATOMIC(uint64_t) inline_remote[INLINE_WORDS];
};

/* Relaxed: a report may read an older value. */
INLINE void slab_set_free(struct slab *slab, unsigned blocks) {
  show(slab, free_local, (uint16_t)blocks);
}

/* Touched by the smallest classes only; the local ones of four neighbouring slots share a page. */
enum { WIDE_ALIGNMENT = 4096 };
struct wide_bitmaps {
  uint64_t local[SLOTS_PER_SUPERSLAB][WIDE_WORDS];
  ATOMIC(uint64_t) remote[SLOTS_PER_SUPERSLAB][WIDE_WORDS];
};

/* The whole record of a SuperSlab. */
struct slab_chunk {
  struct superslab superslab;
  struct slab slabs[SLOTS_PER_SUPERSLAB];
  char wide_room[sizeof(struct wide_bitmaps) + WIDE_ALIGNMENT];
};
_Static_assert(sizeof(struct slab_chunk) == SUPERSLAB_RECORD_BYTES, "the pool makes room for it");
_Static_assert(sizeof(((struct slab_chunk *)0)->wide_room) == SUPERSLAB_BITMAP_BYTES,
               "the pool gives their pages back while no slot is used");

/* For a granule in a SuperSlab. */
INLINE struct slab_chunk *slab_chunk_of(size_t granule) {
  return (struct slab_chunk *)(void *)superslab_of_granule(granule);
}
INLINE struct slab *slab_of_granule(size_t granule) {
  return &slab_chunk_of(granule)->slabs[granule % GRANULES_PER_CHUNK];
}

INLINE struct wide_bitmaps *slab_chunk_wide(struct slab_chunk *chunk) {
  return (struct wide_bitmaps *)round_up((uintptr_t)chunk->wide_room, WIDE_ALIGNMENT); /* NOLINT */
}

/* Where the bitmaps of a slab of this shape lie: apart for shapes with many blocks, so that all
 * others stay compact. Equals its record's pointers, computed without reading it. */
INLINE uint64_t *slab_local_bits(struct slab_chunk *chunk, unsigned slot,
                                 const struct slab_shape *shape) {
  return shape->word_count > INLINE_WORDS ? slab_chunk_wide(chunk)->local[slot]
                                          : chunk->slabs[slot].inline_local;
}
INLINE ATOMIC(uint64_t) *slab_remote_bits(struct slab_chunk *chunk, unsigned slot,
                                          const struct slab_shape *shape) {
  return shape->word_count > INLINE_WORDS ? slab_chunk_wide(chunk)->remote[slot]
                                          : chunk->slabs[slot].inline_remote;
}

/* The slab of a block in a granule whose map entry names a slab class.  Records of a slab's later
 * slots only know where it begins. */
INLINE struct slab *slab_of_block(uintptr_t block) {
  struct slab *slab = slab_of_granule(granule_of(block));
  return slab - ((block - slab->base) >> GRANULE_SHIFT);
}

/* Its entries in the owner map; the tag is its owner's. */
INLINE void slab_set_map_entries(const struct slab *slab, uint32_t tag) {
  size_t granule = granule_of(slab->base);
  for (unsigned slot = 0; slot < slab->slot_count; slot++)
    owner_map_set(granule + slot, map_entry(tag, slab->class));
}

/* Bits of a word of its bitmaps that are blocks. */
INLINE uint64_t slab_word_bits(const struct slab *slab, unsigned word) {
  unsigned left = slab->capacity - word * 64u;
  return low_bits(left < 64 ? left : 64);
}

/* The law above, as far as one thread can see it: its holder, or the holder of its owner's
 * latch. */
bool slab_is_valid(const struct slab *slab);

/* A slab in state ACTIVE, all blocks free in `local`, without an owner: the caller is its only
 * holder. NULL when none is had. */
struct slab *acquire_slab(unsigned class, enum pool_reach reach, struct counters *counters);

/* Takes back a slab whose blocks are all free in `local`, and have been for `age_ms`, and that has
 * no owner. */
void release_slab(struct slab *slab, uint32_t age_ms, struct counters *counters);

#endif
