/* slot_index.h: the first SuperSlab that has wanted slots, found without looking at the others.
 *
 *   kinds      a byte for each SuperSlab: has it a run of 1, 2 or 4 UNUSED slots, and such a run
 *              of dirty ones?  Or is it wholly UNUSED: kept, with pages, or clean?
 *   tree       words of eight bytes: those of 8 SuperSlabs, of 8 such words, and of 8 of these,
 *              a gibibyte; a byte of the upper words is the union of the bytes below it
 *   trees      of 8 GiB each: the first lies here, as a small process needs no other
 *
 * A search goes down from the lowest gibibyte that has the kind: lowest address first, in a time
 * that does not grow with the heap. Lock-free. A thread that changes a SuperSlab's slots updates
 * its byte, and sets missing bits above; surplus bits above are cleared by the search that they
 * mislead.
 *
 *   law, when all is quiet: every needed bit is set; a surplus bit costs a search a few steps,
 *   once */
#ifndef HAK_POOL_SLOT_INDEX_H
#define HAK_POOL_SLOT_INDEX_H

#include "map/window.h"

#define SLOTS_PER_SUPERSLAB GRANULES_PER_CHUNK
#define ALL_SLOTS UINT32_MAX
/* Hardened mode leaves every second mebibyte closed: nothing lies one mebibyte away from a
 * block. */
#define LOWER_SLOTS (ALL_SLOTS >> SLOTS_PER_SUPERSLAB / 2)
_Static_assert(SLOTS_PER_SUPERSLAB == 32, "a word has a bit for each slot, twice");

/* `slots` of a SuperSlab: UNUSED ones in the low half, dirty ones, whose pages may be resident, in
 * the high half. */
INLINE uint32_t slots_unused(uint64_t slots) { return (uint32_t)slots; }
INLINE uint32_t slots_dirty(uint64_t slots) { return (uint32_t)(slots >> SLOTS_PER_SUPERSLAB); }
INLINE uint64_t slots_as_dirty(uint32_t mask) { return (uint64_t)mask << SLOTS_PER_SUPERSLAB; }

INLINE uint32_t run_mask(unsigned first, unsigned slot_count) {
  return (uint32_t)low_bits(slot_count) << first;
}

enum slot_kind {
  KIND_DIRTY_RUN = 1 << 0, /* of one slot; of two and four: the next bits */
  KIND_ANY_RUN = 1 << 3,
  KIND_KEPT = 1 << 6,
  KIND_CLEAN = 1 << 7
};

/* The slots that may ever be used. */
uint32_t usable_slots(void);

/* Bits at which a run of `slot_count` set bits begins. */
INLINE uint32_t run_starts(uint32_t bits, unsigned slot_count) {
  if (slot_count >= 2) bits &= bits >> 1;
  if (slot_count >= 4) bits &= bits >> 2;
  return bits;
}

INLINE unsigned kind_of_run(unsigned slot_count, bool is_dirty) {
  return slot_count * (is_dirty ? KIND_DIRTY_RUN + 0u : KIND_ANY_RUN + 0u);
}

/* All kinds of a SuperSlab with these slots. */
unsigned slot_kinds(uint64_t slots);

/* The slots of the SuperSlab in this chunk have been changed, to `now` among others; by a seq
 * operation if it set UNUSED bits. */
void slot_index_note(size_t chunk, const ATOMIC(uint64_t) *slots, uint64_t now);

/* False without memory for the place of this chunk. */
bool slot_index_covers(size_t chunk);

/* The first chunk that may hold a SuperSlab of the kind, or NO_CHUNK. A caller that finds none
 * notes its slots and searches again. */
size_t slot_index_find(unsigned kind);
/* The last one below `chunk` of any of the kinds. */
size_t slot_index_find_below(size_t chunk, unsigned kinds);

/* In a forked child, while it has one thread: completes what another thread was adding. Returns the
 * number of kept SuperSlabs. */
size_t slot_index_repair(void);

#endif
