/* sampling.h: what a heap profile has to do with malloc and free (profile/profile.h).
 *
 *   malloc   armed: the slow path pops as the fast one would, a pass less      nearly always
 *            no passes: a lot is counted, which says how many there are now, and whether a sample comes after them
 *              Tiny, Mid     taken from a slab of samples (profile/sampled_slabs.h)
 *              Large, Big    its range says so;   hardened mode: it is looked up at its free
 *   free     a sample's entry in the owner map is no slab class's: it comes the long way
 *
 * Whoever resizes a block where it is frees it and makes another, as far as the profile can tell. */
#ifndef HAK_HEAP_SAMPLING_H
#define HAK_HEAP_SAMPLING_H

#include "cache/allocation.h"
#include "cache/class_figures.h"

/* Whether a profile counts this heap's requests, or may want to. */
INLINE bool sampling_wants_all(const struct heap *heap) {
  return UNLIKELY(heap->sampler.countdown != 0) || sampler_is_wanted(&heap->sampler);
}

/* Looks at the control record, and does what is asked there.  The heap's thread, in slow paths, outside of its latch. */
void sampling_look(struct heap *heap);

/* The program switches a profile on or off, as profile_ask says; this thread's heap follows at once.  Any thread. */
bool sampling_switch(bool is_on, uint64_t period_bytes);

/* The second part of it alone: what is free goes back, if that is asked for. */
void sampling_purge(struct heap *heap);

/* Counts a request; true when its block is to be a sample. */
bool sampling_counts(struct heap *heap, const struct allocation *allocation);
/* The same where there are no lots: of a named heap's, which no magazine serves, or while one is in use. */
bool sampling_counts_one(struct heap *heap, const struct allocation *allocation);
/* First of all: whether the sample is to be kept (samples_throw_coins in profile/samples.h).  One that is not counts for its site,
 * and its block is as any other. */
int sampling_throw_coins(struct heap *heap);
/* A block for a sample that lies among samples, or NULL: then any will do. */
void *sampling_take(struct heap *heap, const struct allocation *allocation);
/* The block of a request that is a sample. */
void sampling_note(struct heap *heap, const struct allocation *allocation, void *block, int coins);

/* Frees a block whose entry in the owner map says that it is a sample. */
void sampling_free(struct heap *heap, void *block);
/* A Large or Big block is about to be freed. */
void sampling_note_freed_range(uintptr_t block);
/* A block stays where and as large as it is; the program asks for another part of it.  Returns it. */
void *sampling_note_kept(void *block, size_t size);
/* A Large or Big block has been resized where it is. */
void sampling_note_resized(struct heap *heap, void *block, size_t size);

#endif
