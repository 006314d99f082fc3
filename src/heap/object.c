#include "heap/object.h"

#include "checked/checked.h"
#include "hardened/nothing.h"
#include "heap/ask.h"
#include "named/named_heap.h"
#include "ranges/range.h"
#include "slab/slab.h"

/* A hurried search goes at most this far back for a range's start; in hardened mode the start is
 * recorded. */
enum { HURRIED_STEPS = 256 };
enum { SLAB_SLOTS_MAX = 4 };

/* A slab that changes owner meanwhile is not one that the caller has a block of. */
INLINE enum object_kind find_in_slab(uintptr_t address, struct object *object) {
  const struct slab *slot = slab_of_granule(granule_of(address));
  size_t slots_before = (address - slot->base) >> GRANULE_SHIFT;
  if (slots_before >= SLAB_SLOTS_MAX || slots_before > granule_of(address) % GRANULES_PER_CHUNK)
    return OBJECT_UNKNOWN;
  const struct slab *slab = slot - slots_before;
  const struct slab_shape *shape = &slab_shapes[map_slab_class(object->entry)];
  uint32_t offset = (uint32_t)(address - slab->base), index = offset / shape->block_bytes;
  if (index >= shape->capacity) return OBJECT_NONE; /* the slab's unused tail */
  object->base = slab->base + (size_t)index * shape->block_bytes;
  object->bytes = shape->block_bytes;
  bool is_live = !(object->entry & MAP_HARDENED) ||
                 checked_slab_block(object->base, shape->block_bytes, &object->bytes);
  return is_live ? OBJECT_LIVE : OBJECT_NONE;
}

static enum object_kind find_in_ranges(uintptr_t address, bool is_hurried, struct object *object) {
  size_t granule = granule_of(address);
  size_t first = range_covering(granule, is_hurried ? HURRIED_STEPS : SIZE_MAX);
  bool is_certain = range_record_if_any(granule) && (!is_hurried || window.hardened_bit);
  if (first == NO_GRANULE) return is_certain ? OBJECT_NONE : OBJECT_UNKNOWN;
  object->entry = load_relaxed(&window.owner_map[first]);
  object->base = range_block(first);
  object->bytes = heap_range_bytes(object->base, object->entry);
  if (map_entry_is_closed(object->entry)) object->bytes = range_requested_bytes(first);
  if (!map_entry_is_live(object->entry)) return OBJECT_NONE;
  return OBJECT_LIVE;
}

static enum object_kind find_elsewhere(uintptr_t address, bool is_hurried, struct object *object) {
  uintptr_t metadata = (uintptr_t)chunk_metadata(granule_of(address) / GRANULES_PER_CHUNK);
  bool is_superslab = metadata && !(metadata & CHUNK_IS_RANGES);
  return is_superslab ? OBJECT_NONE : find_in_ranges(address, is_hurried, object);
}

INLINE enum object_kind find_in_window(uintptr_t address, bool is_hurried, struct object *object) {
  size_t granule = granule_of(address);
  if (UNLIKELY(granule >= load_relaxed(&window.granule_count))) return OBJECT_UNKNOWN;
  object->entry = load_relaxed(&window.owner_map[granule]);
  bool is_slab =
      map_entry_is_live(object->entry) && map_slab_class(object->entry) < SLAB_CLASS_COUNT;
  return LIKELY(is_slab) ? find_in_slab(address, object)
                         : find_elsewhere(address, is_hurried, object);
}

/* Before the first block there is no window, and nothing lies in it. */
enum object_kind object_find(uintptr_t address, bool is_hurried, struct object *object) {
  enum object_kind kind = OBJECT_UNKNOWN;
  object->base = 0;
  if (is_in_window(address))
    kind = find_in_window(address, is_hurried, object);
  else if (nothing_covers(address))
    kind = OBJECT_NONE;
  if (kind != OBJECT_LIVE) return kind;
  if (address < object->base) return OBJECT_NONE; /* the front of a range */
  return address - object->base < object->bytes ? OBJECT_LIVE : OBJECT_PAST_END;
}

struct block_description object_describe(const struct object *object) {
  return named_describe(object->base, object->entry, object->bytes);
}

bool object_is_ours_at_work(void) {
  const struct heap *heap = heap_of_thread;
  if (!heap) return true;
  return heap == &ended_heap || (heap_is_real(heap) && load_relaxed(&heap->is_busy));
}
