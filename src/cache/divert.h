/* divert.h: makes a thread take the slow path at its next free, or at each malloc.
 *
 * Until that free the tag of its heap matches nothing (in hardened mode it never matches); the
 * reasons and their answers are in cache/heap.h. One is a ticker: a thread whose magazines never
 * miss would get no guarded block.  The helper thread, in a program with threads, diverts one
 * thread at a time: 10 blocks a second in the whole program. */
#ifndef HAK_CACHE_DIVERT_H
#define HAK_CACHE_DIVERT_H

#include "cache/heap.h"

/* As a tool does that pokes the heap: no entry of a slab has this highest byte. */
INLINE void heap_divert(struct heap *heap, enum attention why) {
  store_relaxed(&heap->tag, MAP_TAG_THREADS | (uint32_t)why << HEAP_POKE_SHIFT);
}

/* ---- all mallocs ----------------------------------------------------------------------------- */

/* From now on the thread's mallocs take blocks of `used`; NULL: of its own heap. Called by the
 * thread, in slow paths. Its magazines are armed meanwhile, so that all its mallocs reach
 * heap_allocate. */
void divert_use(struct heap *heap, struct hak_heap *used);

/* From now on the thread moves blocks (cache/moving.h), or no longer. Called by the thread. */
void divert_move(struct heap *heap, bool is_moving);

/* Around allocations of the C library that may outlive a named heap without the program's
 * knowledge: the heap in use is set aside. */
INLINE struct hak_heap *divert_set_aside(void) {
  struct hak_heap *used = heap_of_thread->used;
  if (UNLIKELY(used != NULL)) divert_use(heap_of_thread, NULL);
  return used;
}
INLINE void divert_take_up(struct hak_heap *used) {
  if (UNLIKELY(used != NULL)) divert_use(heap_of_thread, used);
}

/* Called by the heap's thread, in slow paths. Reads the profile's control record: while a profile
 * is on, the magazines are armed, so that all its mallocs take the slow path, which counts. */
void divert_look(struct heap *heap);
/* Makes all threads read the control record when they next allocate or free. Any thread. */
void divert_all(void);
/* Called when the heap loses its thread: stops using a named heap; the next thread reads the
 * control record again. */
void divert_disarm(struct heap *heap);

enum { DIVERT_TICK_MS = 100 };
bool divert_wants_ticks(void);
void divert_tick(void);

#endif
