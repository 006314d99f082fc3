/* divert.h: a thread is made to come the slow way at its next free, wherever it is now.
 *
 * Its tag matches nothing for a while.  Three want that: a round, of a thread that has long been in no slow path
 * (reclaim/reclaim.c); a tool that has switched a profile on or off (profile/profile.h), which writes the tag's lowest byte from
 * outside; and the ticker of guarded blocks: a thread whose magazines never miss is never sampled.  The ticker
 * is the helper thread, in a program with threads: one of them at a time is sampled so, 10 blocks a second in the whole
 * program. */
#ifndef HAK_CACHE_DIVERT_H
#define HAK_CACHE_DIVERT_H

#include "cache/heap.h"

/* As a tool does that pokes it: own entries differ from it in what is no slab class, all others in the tag. */
INLINE void heap_divert(struct heap *heap) {
  store_relaxed(&heap->tag, heap->owner.tag | (uint32_t)HEAP_POKE);
}
INLINE bool heap_is_diverted(const struct heap *heap) {
  /* relaxed: a divert that is seen late is one at the next free. */
  return UNLIKELY(load_relaxed(&heap->tag) != heap->owner.tag);
}

/* ---- all mallocs ----------------------------------------------------------------------------------------------- */

/* Whether requests are to come to heap_allocate, whatever there is in caches: it is armed, or is about to be. */
INLINE bool heap_may_be_armed(const struct heap *heap) {
  return UNLIKELY(heap->is_armed) || sampler_is_wanted(&heap->sampler);
}

/* From now on its thread's mallocs are to have blocks of that heap; NULL: of its own.  By the thread, in slow paths.  Its
 * magazines are armed meanwhile, so that they all come to heap_allocate. */
void divert_use(struct heap *heap, struct hak_heap *used);

/* Around what the C library allocates for longer than the program can know of: what is in use is set aside. */
INLINE struct hak_heap *divert_set_aside(void) {
  struct hak_heap *used = heap_of_thread->used;
  if (UNLIKELY(used != NULL)) divert_use(heap_of_thread, NULL);
  return used;
}
INLINE void divert_take_up(struct hak_heap *used) {
  if (UNLIKELY(used != NULL)) divert_use(heap_of_thread, used);
}

/* By the heap's own thread, in slow paths.  It looks at what the profile's control record asks for: while that is on its
 * magazines are armed, so that all its mallocs come to the slow one, which counts. */
void divert_look(struct heap *heap);
/* All threads look at it as soon as they allocate or free.  Any thread. */
void divert_all(void);
/* The heap is to be nobody's: none is in use, and it looks again when it is somebody's. */
void divert_disarm(struct heap *heap);

/* It has come, with a block of the class: straight on from now, and in guard mode the next request for such a block is
 * sampled. */
void divert_end(struct heap *heap, unsigned class);

enum { DIVERT_TICK_MS = 100 };
bool divert_wants_ticks(void);
void divert_tick(void);

#endif
