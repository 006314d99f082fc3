/* slab.h: the blocks of one slab, and its place in its owner's bins.
 *
 * All functions need the latch of the slab's owner. */
#ifndef HAK_SLAB_SLAB_H
#define HAK_SLAB_SLAB_H

#include "report/report.h"
#include "slab/owner.h"

/* Makes `owner` the owner of a slab that the caller alone holds: map entries, then the field. */
void slab_own(struct slab *slab, struct owner *owner);

/* Moves up to `wanted` free blocks out of `local` to blocks[0] … so that the last one has the
 * lowest address (a magazine pops it first); returns how many. */
unsigned slab_take(struct slab *slab, struct owner *owner, void **blocks, unsigned wanted);

/* The first free block of `local`; there is one at least. */
void *slab_take_first(struct slab *slab, struct owner *owner);

/* Takes up to `wanted` blocks for another owner's thread, none of them fresh: of those of which
 * neighbours share a cache line only all at once, so that no line is given to two threads. */
unsigned slab_lend(struct slab *slab, struct owner *owner, void **blocks, unsigned wanted);

/* The number of blocks to take when a magazine wants `wanted`. Fresh ones only if all free ones are
 * fresh, and few at a time: a magazine would touch them all, one after the other, though older ones
 * come back meanwhile. */
unsigned slab_batch(const struct slab *slab, const struct owner *owner, unsigned wanted);

/* Free blocks that have been handed out before; the other free ones, all after them, are fresh. */
INLINE unsigned slab_reusable(const struct slab *slab) {
  return slab->free_local - (unsigned)(slab->capacity - slab->handed_out);
}

/* Moves one free block out of `local`, chosen by `random`; there is one at least. From then on the
 * slab has no fresh blocks. */
void *slab_take_at_random(struct slab *slab, struct owner *owner, uint64_t random);

/* Whether a block of this slab begins at the address, and which. */
INLINE bool slab_has_block(const struct slab *slab, uintptr_t address, unsigned *index) {
  size_t found = slab_block_index(&slab_shapes[slab->class], address - slab->base);
  *index = (unsigned)found;
  return found < slab->capacity;
}

/* Index of a block of this slab; NO_BLOCK, after a report, when none begins at the address. */
enum { NO_BLOCK = INT32_MAX };
unsigned slab_index_of(const struct slab *slab, uintptr_t block, const char *verb);
/* Describes the block that contains the address, for a report. */
struct block_description slab_describe(const struct slab *slab, uintptr_t address);
/* Report a misuse; false. (By word and bits, which the loops that free blocks have in
 * registers.) */
COLD bool slab_fail_double_free(const struct slab *slab, unsigned word, uint64_t twice);
COLD bool slab_fail_pointer(const struct slab *slab, uintptr_t block, const char *verb);

/* Gives the first of blocks[0] … that are this slab's back to `local`; returns how many those are.
 * Ends the program when one was free already. */
unsigned slab_put(struct slab *slab, struct owner *owner, void *const *blocks,
                  unsigned block_count);

/* Notes blocks that came back to `local`; notes a word that got bits; moves the slab to its place
 * in the bin. */
INLINE void slab_note_freed(struct slab *slab, struct owner *owner, unsigned blocks,
                            uint32_t block_bytes) {
  slab_set_free(slab, slab->free_local + blocks);
  add_single_writer(&owner->bytes_out, -((int64_t)blocks * block_bytes));
}
INLINE void slab_note_word(struct slab *slab, unsigned word) {
  if (word < slab->first_word) slab->first_word = (uint8_t)word;
}
void slab_place(struct slab *slab, struct owner *owner);

/* Gives one block back, number `index` of a slab of this shape, without reading the record's first
 * line; bytes_out is left to the caller. False when it was free already. */
INLINE bool slab_put_index(struct slab *slab, const struct slab_shape *shape, size_t index,
                           struct owner *owner) {
  uint64_t *word = &slab->local[index / 64], bits = *word;
  unsigned free_blocks = slab->free_local + 1u;
  if (UNLIKELY(add_bit(&bits, index))) return false;
  *word = bits;
  slab_set_free(slab, free_blocks);
  slab_note_word(slab, (unsigned)(index / 64));
  ASSERT(slab->is_listed || slab == owner->bins[slab->class].current || free_blocks == 1);
  /* The first or the last to be free, in one branch: which of a class's slabs the next block
   * belongs to cannot be predicted. */
  if (UNLIKELY(free_blocks - 2u >= shape->capacity - 2u)) slab_place(slab, owner);
  return true;
}
INLINE bool slab_put_one(struct slab *slab, unsigned class, unsigned index, struct owner *owner) {
  const struct slab_shape *shape = &slab_shapes[class];
  if (UNLIKELY(!slab_put_index(slab, shape, index, owner))) return false;
  add_single_writer(&owner->bytes_out, -(int64_t)shape->block_bytes);
  return true;
}

/* Moves `remote` to `local`; returns the number of blocks. */
unsigned slab_collect(struct slab *slab, struct owner *owner);

/* Links a slab with free blocks into its bin; unlinks it. */
void slab_list(struct slab *slab, struct owner *owner);
void slab_unlist(struct slab *slab, struct owner *owner);
/* Makes a listed slab the first, and those before it the last; not while wholly free ones must be
 * that. */
void slab_rotate(struct bin *bin, struct slab *first);

/* Gives a slab whose blocks are all free back to the pool. False when a thread is queueing it at
 * this moment: then it stays as it is, and the thread that drains it will try again. */
bool slab_try_release(struct slab *slab, struct owner *owner);

/* The number of blocks waiting in `remote`. */
unsigned slab_count_remote(const struct slab *slab);

#endif
