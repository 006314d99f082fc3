/* reuse.h: whether a thread reuses other heaps' Tiny blocks that it frees, or sends them home.
 *
 * A reused block keeps its owner, so the next free of it by this thread is a remote one again.  That costs nothing where all frees of
 * the class are remote anyway: a stage of a pipeline, a thread that only frees.  Where a thread frees mostly blocks of its own, a block
 * that goes home makes room for one that is freed the fast way.
 *
 * Own frees are not counted, which would be work in the fast path; their writes show: from refill to refill a magazine is popped empty,
 * and its slots keep what was refilled unless own frees were pushed over it.  One slot is watched.  The result is valid for a number of
 * frees, the lease. */
#ifndef HAK_CACHE_REUSE_H
#define HAK_CACHE_REUSE_H

#include "cache/magazine.h"

/* One for each Tiny class. */
struct reuse {
  void *watched;    /* the slot's content unless an own block was freed; NULL: not watched */
  uint16_t slot;    /* of the magazine */
  uint8_t streak;   /* times in a row that the slot was untouched */
  bool turns;       /* a lease has begun or ended: the block freed before went the other way */
  uint16_t lease;   /* blocks that may still be reused */
  uint16_t granted; /* the lease when it was set last */
};

/* A block was reused under the lease. */
INLINE void reuse_spend(struct reuse *reuse) {
  if (UNLIKELY(!--reuse->lease)) reuse->turns = true;
}
/* At a refill: before the magazine is filled, and after it. */
void reuse_judge(struct reuse *reuse, const struct magazine *magazine);
void reuse_watch(struct reuse *reuse, const struct magazine *magazine);
/* At a flush, before the magazine notes it. */
void reuse_note_flush(struct reuse *reuse, const struct magazine *magazine);
/* The remote-free buffer is full: a few blocks of classes that the thread never allocated may be reused. */
void reuse_note_full_buffer(struct reuse reuse[static TINY_CLASS_COUNT],
                            const struct magazine magazines[static TINY_CLASS_COUNT]);

#endif
