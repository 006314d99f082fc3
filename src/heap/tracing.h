/* tracing.h: records every allocation and free of a thread while a tool asks for it
 * (profile/trace_ring.h).
 *
 * The heap is armed, so each malloc misses, and its tag matches nothing, so each free does. Blocks
 * still come from its magazines and go there, by a short way of its own, so that the program does
 * what it does otherwise.
 *
 * A block is recorded once it is there, and its free before it goes: no other thread's event of the
 * address comes in between. */
#ifndef HAK_HEAP_TRACING_H
#define HAK_HEAP_TRACING_H

#include "cache/heap.h"

/* Nothing else is wanted of the heap, and its magazines serve it. */
INLINE bool tracing_is_plain(const struct heap *heap) {
  return load_relaxed(&heap->armed) == ARMED_BY_TRACE && heap_attention(heap) == HEAP_TRACE;
}

/* A block of the thread's magazine, or NULL: then the heap is to serve it. */
void *tracing_pop(struct heap *heap, size_t size, size_t alignment);
/* Notes a block that the heap has served. Returns it. */
void *tracing_note(struct heap *heap, void *block, size_t size, size_t alignment);
/* Notes a free; true if that was all, as a magazine has the block. */
bool tracing_free(struct heap *heap, void *block);
/* Note, while all is recorded, that a block has another size where it is; that it has another
 * address. */
void tracing_resize(struct heap *heap, void *block, size_t size);
void tracing_move(struct heap *heap, void *block, void *moved, size_t size);

#endif
