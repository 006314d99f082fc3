/* named_slabs.h: a named heap's blocks of slab classes. */
#ifndef HAK_NAMED_NAMED_SLABS_H
#define HAK_NAMED_NAMED_SLABS_H

#include "named/named_heap.h"
#include "slab/slab.h"

/* A block of the class, or NULL without memory; **went_beyond becomes true when the current slab
 * has no free block.  Under the latch. */
struct slab *named_slabs_find(struct hak_heap *heap, unsigned class);
INLINE void *named_slabs_take(struct hak_heap *heap, unsigned class, bool *went_beyond) {
  struct slab *slab = heap->owner.bins[class].current;
  if (UNLIKELY(!slab || !slab->free_local)) {
    *went_beyond = true;
    slab = named_slabs_find(heap, class);
  }
  return LIKELY(slab != NULL) ? slab_take_first(slab, &heap->owner) : NULL;
}

/* Puts back a block that was not handed out. */
void named_slabs_put_back(struct hak_heap *heap, void *block);

/* Frees a block of the class, by its entry in the owner map; reports when it is not a block or free
 * already. True when more than the block may be free now: its slab, or pages of it. In hardened
 * mode it reads as zero. */
bool named_slabs_give(struct hak_heap *heap, unsigned class, void *block);

/* Frees all blocks, under the latch, after `bury`, which may be NULL, was called for each; stops at
 * the first block that it refuses, and returns that, or 0. */
typedef bool named_bury(uintptr_t block, uint32_t entry);
uintptr_t named_slabs_give_all(struct hak_heap *heap, named_bury *bury);

#endif
