/* named_slabs.h: a named heap's blocks of slab classes. */
#ifndef HAK_NAMED_NAMED_SLABS_H
#define HAK_NAMED_NAMED_SLABS_H

#include "config/options.h"
#include "named/named_heap.h"
#include "slab/slab.h"

/* Of a request; SLAB_CLASS_COUNT of one that gets a range.  Hardened mode has no slabs above 32 KiB, and no blocks below 16 bytes. */
INLINE unsigned named_class_of(size_t size, size_t alignment) {
  enum { HARDENED_MIN_BYTES = 16 };
  size_t most = options.harden ? STEPPED_MAX_BYTES : MID_MAX_BYTES;
  if (UNLIKELY(size > most)) return SLAB_CLASS_COUNT;
  if (UNLIKELY(options.harden) && size < HARDENED_MIN_BYTES) size = HARDENED_MIN_BYTES;
  return slab_class_of(size, alignment);
}

/* A block of the class, or NULL without memory; *went_beyond becomes true when the current slab had none.  Under the latch. */
struct slab *named_slabs_find(struct hak_heap *heap, unsigned class);
INLINE void *named_slabs_take(struct hak_heap *heap, unsigned class, bool *went_beyond) {
  struct slab *slab = heap->owner.bins[class].current;
  if (UNLIKELY(!slab || !slab->free_local)) {
    *went_beyond = true;
    slab = named_slabs_find(heap, class);
  }
  return LIKELY(slab != NULL) ? slab_take_first(slab, &heap->owner) : NULL;
}

/* Frees what is a block by its entry in the owner map; says so when it is none, or free already.  `counters` are of the thread
 * that frees.  True when more than the block may be free now: its slab, or pages of it. */
bool named_slabs_give(struct hak_heap *heap, void *block, struct counters *counters);

/* Frees all.  Under the latch. */
void named_slabs_give_all(struct hak_heap *heap);

#endif
