#include "heap/tracing.h"

#include "cache/divert.h"
#include "map/window.h"
#include "profile/trace_ring.h"

/* The record's lease may have ended. */
INLINE void look_if(bool is_due, struct heap *heap) {
  if (UNLIKELY(is_due || sampler_is_wanted(&heap->sampler))) divert_look(heap);
}

void *tracing_note(struct heap *heap, void *block, size_t size, size_t alignment) {
  if (block) look_if(trace_ring_take(heap->ring, (uintptr_t)block, size, alignment), heap);
  return block;
}

void *tracing_pop(struct heap *heap, size_t size, size_t alignment) {
  if (size > MID_MAX_BYTES) return NULL;
  unsigned class = slab_class_of(size, alignment);
  if (class >= SLAB_CLASS_COUNT) return NULL;
  void *block = magazine_pop(&heap->magazines[class]);
  if (UNLIKELY(!block || alignment != 1)) return tracing_note(heap, block, size, alignment);
  look_if(trace_ring_take_cached(heap->ring, (uintptr_t)block, size), heap);
  return block;
}

bool tracing_free(struct heap *heap, void *block) {
  look_if(trace_ring_free(heap->ring, (uintptr_t)block), heap);
  size_t place = map_threads_place(owner_map_entry((uintptr_t)block));
  return place < PLACES_END && tracing_is_plain(heap) && heap_takes(heap, place, block);
}

void tracing_resize(struct heap *heap, void *block, size_t size) {
  if (!heap_is_armed_by(heap, ARMED_BY_TRACE)) return;
  look_if(trace_ring_resize(heap->ring, (uintptr_t)block, size), heap);
}

void tracing_move(struct heap *heap, void *block, void *moved, size_t size) {
  if (!heap_is_armed_by(heap, ARMED_BY_TRACE)) return;
  trace_ring_free(heap->ring, (uintptr_t)block);
  tracing_note(heap, moved, size, 1);
}
