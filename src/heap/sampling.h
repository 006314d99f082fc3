/* sampling.h: connects a heap profile with malloc and free (profile/profile.h).
 *
 *   malloc   armed: the slow path pops as the fast one would, a pass less      nearly always
 *            no passes: a lot is counted, which sets the passes, and whether a sample follows them
 *              Tiny, Mid     taken from a heap of their own (named/named_samples.h)
 *              Large, Big    its range says so;   hardened mode: it is looked up at its free
 *   free     of a block of that heap, as of any named heap's, or of a range: whether it has a
 *            sample
 *
 * To a profile an in-place resize is a free and a new block. */
#ifndef HAK_HEAP_SAMPLING_H
#define HAK_HEAP_SAMPLING_H

#include "cache/class_figures.h"
#include "map/allocation.h"

/* Looks at the control record, and does the work requested there.  The heap's thread, in slow
 * paths, outside of its latch. */
void sampling_look(struct heap *heap);

/* The program switches a profile on or off by profile_ask; this thread's heap follows at once.  Any
 * thread. */
bool sampling_switch(bool is_on, uint64_t period_bytes);

/* Answers HEAP_POKE and HEAP_WAIT: frees are fast again, and in guard mode the next request for a
 * block of the class is sampled.  The heap's thread, which has freed one, outside of its latch. */
void sampling_attend(struct heap *heap, unsigned class);

/* Counts a request while a profile is on. For one that is to be a sample, the coins
 * (samples_throw_coins in profile/samples.h), negative when it is dropped: it counts for its site,
 * and its block is a plain one. */
enum { NOT_SAMPLED = -2 };
int sampling_count(struct heap *heap, const struct allocation *allocation);
INLINE int sampling_coins(struct heap *heap, const struct allocation *allocation) {
  return LIKELY(!heap_may_be_armed_by(heap, ARMED_BY_PROFILE)) ? NOT_SAMPLED
                                                               : sampling_count(heap, allocation);
}
/* A block of the samples' heap, or NULL: then any block will do. */
void *sampling_take(struct heap *heap, const struct allocation *allocation);
/* Records the block of a sampled request. */
void sampling_note(struct heap *heap, const struct allocation *allocation, void *block, int coins);

/* Called before a Large or Big block is freed. */
void sampling_note_freed_range(uintptr_t block);
/* Called when a block keeps place and size, and the program's requested bytes change. Returns
 * it. */
void *sampling_note_kept(void *block, size_t size);
/* Called after a Large or Big block was resized in place. */
void sampling_note_resized(struct heap *heap, void *block, size_t size);

#endif
