/* pending.h: the pending queue of an owner: slabs that other threads freed into. */
#ifndef HAK_SLAB_PENDING_H
#define HAK_SLAB_PENDING_H

#include "slab/owner.h"

/* Queues a slab with its current owner. The caller has just changed slab->queued from 0 to 1.
 * Lock-free, no latch. */
void pending_enqueue(struct slab *slab, struct counters *counters);

/* Frees blocks of one word of a slab that another heap owns (or may own): atomic, wait-free but for
 * the 0 -> 1 edge, on which the slab joins its owner's pending queue. */
void slab_free_remote(struct slab *slab, unsigned word, uint64_t bits, struct counters *counters);

/* Latch. False when no slab of the class is queued. */
INLINE bool pending_may_have(const struct owner *owner, unsigned class) {
  /* seq: a thread that found nothing anywhere has cleared its bit of orphan_mask before this check;
   * pairs with pending_push, which reads that mask after it has set this bit. */
  return load_seq(&owner->ready_mask) >> class & 1;
}

/* Latch.  The next slab of the class that has been queued, or NULL.  It still has queued == 1. */
struct slab *pending_next(struct owner *owner, unsigned class);

/* Latch. Ends a slab's stay in the queue: queued = 0, then its remote frees are collected; a slab
 * that has another owner by now is sent there. True when it has free blocks for this owner. */
bool pending_drain(struct slab *slab, struct owner *owner);

/* Latch.  While a queue is walked: slabs that stay in it are set aside, and put back undrained at
 * the end. */
INLINE void pending_set_aside(struct slab *slab, struct slab **aside) {
  store_relaxed(&slab->pending_next, *aside);
  *aside = slab;
}
void pending_put_back_all(struct slab *aside, struct owner *owner);

/* In a child: a thread that was cut off may have queued a slab that no mask shows. */
void pending_after_fork(struct owner *owner);

/* Latch. Drains up to `budget` slabs of the class; returns how many have free blocks for this
 * owner. */
unsigned pending_drain_class(struct owner *owner, unsigned class, uint64_t budget);

#endif
