#include "slab/pending.h"

#include "config/options.h"
#include "purge/purge.h"
#include "slab/slab.h"

static uint64_t class_bit(unsigned class) { return UINT64_C(1) << class; }

static void pending_push(struct owner *owner, struct slab *slab) {
  unsigned class = slab->class;
  struct slab *first = NULL; /* a guess: the line is taken once, to write */
  do {
    store_relaxed(&slab->pending_next, first);
    /* seq: the slab is in the queue before the mask and the owner's state are read; pairs with
     * pending_next, which clears the bit before it looks at the queue. */
  } while (!cas_weak_seq(&owner->pending[class], &first, slab));
  /* The thread that found the queue empty sets the bit; a fork may have cut it off before it did
   * (pending_after_fork). */
  if (!first || !(load_seq(&owner->ready_mask) & class_bit(class)))
    fetch_or_seq(&owner->ready_mask, class_bit(class));
  purge_want(); /* a sweep may find the slab wholly free */
  /* seq: pairs with owner_park, which changes the state before it reads the ready mask. */
  if (load_seq(&owner->state) != OWNER_RUNNING && !owner_is_named(owner))
    orphan_mask_add(class_bit(class));
}

void pending_enqueue(struct slab *slab, struct counters *counters) {
  if (options.route_p) slab->edge_ns = os_now_ns(); /* this thread holds `queued` */
  for (;;) {
    /* seq: pairs with slab_own and slab_try_release. */
    struct owner *owner = load_seq(&slab->owner);
    if (owner) {
      count(counters, COUNT_pending_enqueued);
      pending_push(owner, slab);
      return;
    }
    /* Too late: the owner found these blocks by itself and released the slab to the pool. Let go
     * of it; but if it has an owner again by now, frees of its blocks may have relied on this
     * thread. */
    store_seq(&slab->queued, 0);
    if (!load_seq(&slab->owner) || exchange_seq(&slab->queued, 1) != 0) return;
  }
}

void slab_free_remote(struct slab *slab, unsigned word, uint64_t bits, struct counters *counters) {
  /* seq: the bit before `queued` is read; pairs with the clearing of `queued` before the exchange
   * of the word: either the owner's exchange finds our bit, or we find `queued` clear. */
  uint64_t before = fetch_or_seq(&slab->remote[word], bits);
  count_add(counters, COUNT_remote_freed_blocks, count_bits(bits));
  if (UNLIKELY(before & bits)) slab_fail_double_free(slab, word, before & bits);
  if (load_seq(&slab->queued) == 0 && exchange_seq(&slab->queued, 1) == 0)
    pending_enqueue(slab, counters);
}

RESIDENT struct slab *pending_next(struct owner *owner, unsigned class) {
  struct bin *bin = &owner->bins[class];
  if (!pending_may_have(owner, class)) return NULL;
  /* acquire (seq): the slabs' links; pairs with push. */
  if (!bin->taken) bin->taken = exchange_seq(&owner->pending[class], NULL);
  struct slab *slab = bin->taken;
  if (slab) bin->taken = load_relaxed(&slab->pending_next);
  if (bin->taken) return slab;
  fetch_and_seq(&owner->ready_mask, ~class_bit(class)); /* seq: pairs with push */
  if (load_seq(&owner->pending[class]))
    fetch_or_relaxed(&owner->ready_mask, class_bit(class)); /* queued while the bit was set */
  return slab;
}

void pending_after_fork(struct owner *owner) {
  uint64_t queued = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    if (load_relaxed(&owner->pending[class])) queued |= class_bit(class);
  /* Writes only where it differs: an unwritten page stays shared. As pending_push, for other
   * threads of the child. */
  if (queued & ~load_seq(&owner->ready_mask)) fetch_or_seq(&owner->ready_mask, queued);
  if (load_seq(&owner->state) != OWNER_RUNNING && !owner_is_named(owner)) orphan_mask_add(queued);
}

void pending_put_back_all(struct slab *aside, struct owner *owner) {
  for (struct slab *slab; (slab = aside);) {
    aside = load_relaxed(&slab->pending_next);
    pending_set_aside(slab, &owner->bins[slab->class].taken);
    fetch_or_relaxed(&owner->ready_mask, class_bit(slab->class));
  }
}

bool pending_drain(struct slab *slab, struct owner *owner) {
  if (load_relaxed(&slab->owner) != owner) { /* adopted while it was being queued here */
    pending_enqueue(slab, &owner->counters);
    return false;
  }
  count(&owner->counters, COUNT_pending_drained);
  /* seq: cleared before the words are exchanged; pairs with slab_free_remote. */
  store_seq(&slab->queued, 0);
  slab_collect(slab, owner);
  return load_relaxed(&slab->owner) == owner && slab->free_local != 0;
}

RESIDENT unsigned pending_drain_class(struct owner *owner, unsigned class, uint64_t budget) {
  unsigned useful = 0;
  for (; budget; budget--) {
    struct slab *slab = pending_next(owner, class);
    if (!slab) break;
    useful += pending_drain(slab, owner);
  }
  return useful;
}
