#include "observe/blocks.h"

#include "cache/heap.h"
#include "cache/quarantine.h"
#include "ranges/range_magazine.h"

/* Only a slab's first slot is ACTIVE, and a slab with remote frees is queued. */
void blocks_visit_slabs(slab_visit *visit, void *context) {
  size_t end = load_relaxed(&window.granule_count) / GRANULES_PER_CHUNK;
  for (size_t chunk = 0; chunk < end; chunk++) {
    uintptr_t record = (uintptr_t)chunk_metadata(chunk);
    if (!record || record & CHUNK_IS_RANGES) continue;
    struct slab_chunk *slabs = slab_chunk_of(chunk * GRANULES_PER_CHUNK);
    for (unsigned slot = 0; slot < SLOTS_PER_SUPERSLAB; slot++) {
      struct slab *slab = &slabs->slabs[slot];
      if (load_relaxed(&slab->state) != SLOT_ACTIVE) continue;
      const struct slab_shape *shape = &slab_shapes[load_relaxed(&slab->class_shown)];
      const ATOMIC(uint64_t) *remote = slab_remote_bits(slabs, slot, shape);
      unsigned blocks = load_relaxed(&slab->free_local_shown);
      unsigned words = load_relaxed(&slab->queued) ? shape->word_count : 0;
      for (unsigned word = 0; word < words; word++)
        blocks += count_bits(load_relaxed(&remote[word]));
      visit(context, slab, shape, blocks < shape->capacity ? blocks : shape->capacity);
    }
  }
}

/* Another thread may be changing each of these: a value may be slightly old, and only counts are
 * made of it. */
static void add_magazines(struct cached_blocks *cached, struct heap *heap) {
  const struct range_magazines *ranges = load_relaxed(&heap->ranges_shown);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    cached->of_class[class] += magazine_count_shown(&heap->magazines[class]);
  if (ranges) cached->range_bytes += load_relaxed(&ranges->bytes);
}

static void add_quarantine(struct cached_blocks *cached, struct heap *heap) {
  struct quarantine *quarantine = load_relaxed(&heap->quarantine_shown);
  if (!quarantine) return;
  for (unsigned index = 0; index < QUARANTINE_PLACES; index++) {
    uintptr_t block = load_relaxed(&quarantine->blocks[index]);
    uint32_t entry = block ? owner_map_entry(block) : MAP_CLASS_MASK;
    if (map_slab_class(entry) < SLAB_CLASS_COUNT) cached->of_class[map_slab_class(entry)]++;
  }
}

void blocks_count_cached(struct cached_blocks *cached) {
  *cached = (struct cached_blocks){0};
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    add_magazines(cached, heap_of_owner(owner));
    add_quarantine(cached, heap_of_owner(owner));
  }
}
