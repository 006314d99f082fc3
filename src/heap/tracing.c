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

/* Others want something of the heap, or another way serves it. */
static bool is_plain(const struct heap *heap) {
  return load_relaxed(&heap->armed) == ARMED_BY_TRACE &&
         load_relaxed(&heap->tag) == heap_resting_tag(heap);
}

void *tracing_pop(struct heap *heap, size_t size, size_t alignment) {
  if (size > MID_MAX_BYTES || !is_plain(heap)) return NULL;
  unsigned class = slab_class_of(size, alignment);
  if (class >= SLAB_CLASS_COUNT) return NULL;
  return tracing_note(heap, magazine_pop(&heap->magazines[class]), size, alignment);
}

bool tracing_free(struct heap *heap, void *block) {
  if (!block) return false;
  look_if(trace_ring_free(heap->ring, (uintptr_t)block), heap);
  size_t class = owner_map_entry((uintptr_t)block) ^ MAP_TAG_THREADS;
  return class < SLAB_CLASS_COUNT && is_plain(heap) &&
         magazine_takes(&heap->magazines[class], block);
}

void tracing_resize(struct heap *heap, void *block, size_t size) {
  look_if(trace_ring_resize(heap->ring, (uintptr_t)block, size), heap);
}

void tracing_move(struct heap *heap, void *block, void *moved, size_t size) {
  trace_ring_free(heap->ring, (uintptr_t)block);
  tracing_note(heap, moved, size, 1);
}
