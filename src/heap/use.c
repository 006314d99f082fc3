#include "heap/use.h"

#include "cache/divert.h"

bool heap_use(struct heap *heap, struct hak_heap *named) {
  struct hak_heap *before = heap->used;
  if (named == before) return true;
  if (named && !named_join(named)) return false;
  divert_use(heap, named);
  if (before) named_part(before);
  return true;
}

void heap_end_use(struct heap *heap) { heap_use(heap, NULL); }
