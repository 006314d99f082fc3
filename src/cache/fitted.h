/* fitted.h: whether most of a class's requests have one size: then a class of that size is made
 * (docs/decisions/0049).
 *
 * A request that misses its magazine votes for its size, in steps of 16 bytes. The candidate's lead
 * is its votes less all others' (R. S. Boyer and J S. Moore, "MJRTY", 1981). Where a program
 * requests a few sizes in turn and a batch has a multiple of their number of blocks, always the
 * same one misses; so above LEAD_OF_CHANCE each request does, and only a size of more than half of
 * them gets the rest of the lead. */
#ifndef HAK_CACHE_FITTED_H
#define HAK_CACHE_FITTED_H

#include "cache/flush.h"

enum {
  FINE_MAX_BYTES = 128, /* up to here each step has a class */
  LEAD_OF_CHANCE = 8,   /* votes */
  LEAD_TO_FIT = 40,
  SLABS_TO_FIT = 4,  /* of 64 KiB each, that the heap has of the class */
  SAVED_PERCENT = 10 /* of a block, that must be saved */
};

/* `bytes`: the request, rounded up to its alignment. It has its block. */
INLINE void fitted_vote(struct heap *heap, unsigned class, size_t bytes) {
  struct bin *bin = &heap->owner.bins[class];
  size_t block_bytes = class_bytes(class), steps = (bytes + 15) / 16;
  if (block_bytes <= FINE_MAX_BYTES || block_bytes > FITTED_MAX_BYTES) return;
  if (bin->candidate != steps && bin->lead) {
    bin->lead--;
    return;
  }
  bin->candidate = (uint16_t)steps;
  bool is_worth = !class_bytes(SLAB_CLASS_COUNT - 1) &&
                  load_relaxed(&bin->slab_count) >= SLABS_TO_FIT &&
                  steps * 16 * 100 <= block_bytes * (100 - SAVED_PERCENT);
  if (bin->lead < (is_worth ? LEAD_TO_FIT : LEAD_OF_CHANCE)) bin->lead++;
  if (LIKELY(!is_worth || bin->lead <= LEAD_OF_CHANCE)) return;
  batch_undo_refill(heap, class);
  if (bin->lead < LEAD_TO_FIT) return;
  class_make_fitted((uint32_t)steps * 16);
  bin->lead = 0; /* where none was made, this is not tried at each request */
}

#endif
