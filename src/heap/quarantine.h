/* quarantine.h: freed blocks that wait before they may be used again (HAKMEM_HARDEN).
 *
 * A ring of each heap, bounded in bytes (HAKMEM_QUARANTINE_BYTES) and blocks.  A block changes places with a
 * random one when it comes, so nobody can tell when it leaves.  All of them read as zero: one that
 * does not, when it is used again (HAKMEM_HARDEN=2: when it leaves), was written to after its free.
 *
 * Ranges (blocks above 32 KiB) wait apart and inaccessible: their pages are given back at once, so they
 * hold nothing but addresses. */
#ifndef HAK_HEAP_QUARANTINE_H
#define HAK_HEAP_QUARANTINE_H

#include "heap/heap.h"

enum { QUARANTINE_BLOCKS = 2048, QUARANTINE_RANGES = 64 };

struct quarantine {
  ATOMIC(uint32_t) block_count; /* in blocks[]; read by reports */
  uint32_t oldest;
  uint32_t range_count, oldest_range;
  size_t bytes;
  uint64_t random;                             /* state of random_next */
  ATOMIC(uintptr_t) blocks[QUARANTINE_BLOCKS]; /* a ring; 0 is an empty place */
  size_t ranges[QUARANTINE_RANGES];            /* first granules */
};

/* The next random number of the heap's generator. */
uint64_t quarantine_random(struct heap *heap);

/* Says so when somebody wrote to a free block, which reads as zero from then on. */
void quarantine_check_untouched(uintptr_t block, const struct slab *slab);

/* Takes a freed block of a slab that reads as zero. */
void quarantine_add(struct heap *heap, uintptr_t block, size_t block_bytes);
/* Takes a freed range that is inaccessible. */
void quarantine_add_range(struct heap *heap, size_t granule);
/* Opens a range's pages and gives it back. */
void quarantine_give_range(size_t granule, struct counters *counters);
/* Lets everything go. */
void quarantine_empty(struct heap *heap);

#endif
