/* quarantine.h: freed blocks that wait before they may be used again (hardened mode).
 *
 *   free ──▶ waiting ──▶ ready, by class ──▶ malloc        own blocks
 *                   └──▶ outgoing ──▶ slabs                others', and what ready has no room for
 *
 * What waits in a heap is bounded in bytes (HAKMEM_QUARANTINE_BYTES) and blocks.  A block that comes takes the place of a
 * random one, which leaves with the next call, so nobody can tell when.  All of them read as zero: one that does not, when it is
 * used again (HAKMEM_HARDEN=2: while it waits, too), was written to after its free.  What is ready came from there, or from
 * random places of a slab.
 *
 * Ranges (blocks above 32 KiB) wait apart and inaccessible: their pages are given back at once, so they hold nothing but
 * addresses, of which other threads may be short: 2 GiB a heap. */
#ifndef HAK_CACHE_QUARANTINE_H
#define HAK_CACHE_QUARANTINE_H

#include "cache/heap.h"
#include "guard/wipe.h"

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
  ATOMIC(uint32_t) block_count; /* that wait; read by reports */
  uint32_t range_count, oldest_range;
  uint32_t outgoing_count, outgoing_bytes;
  uint32_t block_most; /* of those that wait, so that their bytes are within their bounds */
  size_t bytes;        /* that wait */
  size_t range_granules;
  uint64_t random;                    /* state of random_next */
  uintptr_t latest;                   /* of them; 0 when it has left */
  uint32_t frees_until_check, checks; /* of what lies beside a freed block */
  uint8_t ready_count[SLAB_CLASS_COUNT], ready_most[SLAB_CLASS_COUNT];
  size_t ranges[QUARANTINE_RANGES]; /* first granules */
  /* Waiting, outgoing, ready, leaving next; 0 is an empty place.  All in one, as they are read from outside. */
  ATOMIC(uintptr_t) blocks[QUARANTINE_PLACES];
};

/* The heap's; NULL without memory. */
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

/* A block that is ready, not checked yet; or 0. */
INLINE uintptr_t quarantine_take(struct quarantine *quarantine, unsigned class) {
  uint32_t count = quarantine->ready_count[class];
  if (UNLIKELY(!count)) return 0;
  ATOMIC(uintptr_t) *last = &quarantine_ready(quarantine, class)[count - 1];
  uintptr_t block = load_relaxed(last);
  store_relaxed(last, 0);
  quarantine->ready_count[class] = (uint8_t)(count - 1);
  return block;
}
/* Takes blocks of the class from slabs; false when there are none, and no memory for more. */
bool quarantine_refill(struct heap *heap, struct quarantine *quarantine, unsigned class);

/* Says so when somebody wrote to a free block, which reads as zero from then on. */
COLD void quarantine_fail_untouched(uintptr_t block, unsigned class);
INLINE void quarantine_check_untouched(uintptr_t block, unsigned class) {
  if (UNLIKELY(!wipe_is_whole(block, class_block_bytes[class])))
    quarantine_fail_untouched(block, class);
}
/* Whether a free checks what lies beside its block: always at HAKMEM_HARDEN=2; below, a thread's first ones, then one
 * in CHECK_PERIOD, at random.  That is also when more blocks are let wait. */
enum { FIRST_CHECKS = 1024, CHECK_PERIOD = 64 };
bool quarantine_plan_check(struct quarantine *quarantine);
INLINE bool quarantine_is_time_to_check(struct quarantine *quarantine) {
  if (UNLIKELY(!quarantine->frees_until_check)) return quarantine_plan_check(quarantine);
  quarantine->frees_until_check--;
  return false;
}

/* The same of the block that came last, which most such writes go to. */
INLINE void quarantine_check_latest(const struct quarantine *quarantine) {
  uintptr_t block = quarantine->latest;
  if (block) quarantine_check_untouched(block, owner_map_entry(block) & MAP_CLASS_MASK);
}

/* Takes a freed block of a slab that reads as zero.  True when memory went back to slabs. */
bool quarantine_add(struct heap *heap, uintptr_t block, unsigned class);
/* Takes a freed range that is inaccessible. */
void quarantine_add_range(struct heap *heap, size_t granule);
/* Lets go what does not wait: what is ready. */
void quarantine_flush(struct heap *heap);
/* Lets everything go. */
void quarantine_empty(struct heap *heap);

#endif
