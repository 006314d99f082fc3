/* quarantine.h: freed blocks that wait before they may be used again (hardened mode).
 *
 *   free ──▶ waiting ──▶ ready, by class ──▶ malloc        own blocks
 *                   └──▶ outgoing ──▶ slabs                others', and those above ready's bound
 *
 * The waiting blocks of a heap are bounded in bytes (HAKMEM_QUARANTINE_BYTES) and number. A block
 * that enters takes the place of a random one, which leaves with the next call, so that its time is
 * unpredictable. All of them read as zero: one that does not, when it is used again
 * (HAKMEM_HARDEN=2: while it waits, too), was written to after its free. Ready blocks come from the
 * waiting ones, or from random places of a slab.
 *
 * Ranges (large blocks) wait apart and inaccessible: their pages are given back at once, so they
 * hold nothing but addresses, which must be left for other threads: 2 GiB a heap. */
#ifndef HAK_CACHE_QUARANTINE_H
#define HAK_CACHE_QUARANTINE_H

#include "cache/heap.h"
#include "hardened/wipe.h"

enum { QUARANTINE_BLOCKS = 1024, QUARANTINE_RANGES = 64 };
#define QUARANTINE_GRANULES (((size_t)2 << 30) >> GRANULE_SHIFT) /* of ranges */
enum { OUTGOING_BLOCKS = 32, OUTGOING_BYTES = 64 << 10, READY_BLOCKS = 128 };
enum {
  READY_PLACES = QUARANTINE_BLOCKS + OUTGOING_BLOCKS,
  LEAVING_PLACE = READY_PLACES + SLAB_CLASS_COUNT * READY_BLOCKS,
  QUARANTINE_PLACES
};

_Static_assert(READY_BLOCKS <= UINT8_MAX, "ready_count has room");

struct quarantine {
  ATOMIC(uint32_t) block_count; /* waiting; read by reports */
  uint32_t range_count, oldest_range;
  uint32_t outgoing_count, outgoing_bytes;
  uint32_t block_most; /* bound of block_count that keeps `bytes` within its own */
  size_t bytes;        /* of the waiting blocks */
  size_t range_granules;
  uint64_t random;                    /* state of random_next */
  uintptr_t latest;                   /* the last block that entered; 0 when it has left */
  uint32_t frees_until_check, checks; /* of the blocks beside a freed block */
  uint8_t ready_count[SLAB_CLASS_COUNT], ready_most[SLAB_CLASS_COUNT];
  size_t ranges[QUARANTINE_RANGES]; /* first granules */
  /* Waiting, outgoing, ready, leaving next; 0 is an empty place.  One array, as they are read from
   * outside. */
  ATOMIC(uintptr_t) blocks[QUARANTINE_PLACES];
};

/* Makes the heap's quarantine; NULL without memory. */
struct quarantine *quarantine_make(struct heap *heap);
INLINE struct quarantine *quarantine_of(struct heap *heap) {
  return LIKELY(heap->quarantine != NULL) ? heap->quarantine : quarantine_make(heap);
}

/* A random number below `count`, which is small. */
INLINE uint32_t quarantine_draw(struct quarantine *quarantine, uint32_t count) {
  return (uint32_t)((random_next(&quarantine->random) >> 32) * count >> 32);
}

INLINE ATOMIC(uintptr_t) *quarantine_ready(struct quarantine *quarantine, unsigned class) {
  return &quarantine->blocks[READY_PLACES + class * READY_BLOCKS];
}

/* Takes a ready block, not checked yet; or 0. Ready blocks lie anywhere in their slabs, and a
 * thread that took over the heap has none of them in its cache: so the next one's ends are fetched,
 * a call before they are checked. (Before a class's first place is another's.) */
INLINE uintptr_t quarantine_take(struct quarantine *quarantine, unsigned class) {
  uint32_t count = quarantine->ready_count[class];
  if (UNLIKELY(!count)) return 0;
  ATOMIC(uintptr_t) *last = &quarantine_ready(quarantine, class)[count - 1];
  uintptr_t block = load_relaxed(last), next = load_relaxed(last - 1);
  store_relaxed(last, 0);
  quarantine->ready_count[class] = (uint8_t)(count - 1);
  PREFETCH((void *)next);
  PREFETCH((void *)(next + class_bytes(class) - TRAILER_BYTES));
  return block;
}
/* Takes blocks of the class from slabs; false when there are none, and no memory for more. */
bool quarantine_refill(struct heap *heap, struct quarantine *quarantine, unsigned class);

/* Reports a write to a free block, and wipes it again. */
COLD void quarantine_fail_untouched(uintptr_t block, unsigned class);
INLINE void quarantine_check_untouched(uintptr_t block, unsigned class) {
  if (UNLIKELY(!wipe_is_whole(block, class_bytes(class)))) quarantine_fail_untouched(block, class);
}
/* Whether a free checks the blocks beside its own: always at HAKMEM_HARDEN=2; below, a thread's
 * first ones, then one in CHECK_PERIOD, at random.  The bound of waiting blocks is also raised
 * then. */
enum { FIRST_CHECKS = 1024, CHECK_PERIOD = 64 };
bool quarantine_plan_check(struct quarantine *quarantine);
INLINE bool quarantine_is_time_to_check(struct quarantine *quarantine) {
  if (UNLIKELY(!quarantine->frees_until_check)) return quarantine_plan_check(quarantine);
  quarantine->frees_until_check--;
  return false;
}

/* Checks the block that came last, which most writes after free hit. */
INLINE void quarantine_check_latest(const struct quarantine *quarantine) {
  uintptr_t block = quarantine->latest;
  if (block) quarantine_check_untouched(block, map_slab_class(owner_map_entry(block)));
}

/* Takes a freed block of a slab that reads as zero.  True when memory went back to slabs. */
bool quarantine_add(struct heap *heap, uintptr_t block, unsigned class);
/* Takes a freed range that is inaccessible. */
void quarantine_add_range(struct heap *heap, size_t granule);
/* Frees the ready blocks, which do not wait. */
void quarantine_flush(struct heap *heap);
/* Frees all blocks. */
void quarantine_empty(struct heap *heap);

#endif
