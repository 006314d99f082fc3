#include "named/named_ranges.h"

#include "foreign/pointer.h"
#include "ranges/big.h"

static uint64_t bytes_of(size_t granule) { return size_of_granules(range_info(granule)->granules); }

static void add_bytes(struct hak_heap *heap, int64_t bytes, int64_t blocks) {
  add_single_writer(&heap->range_bytes, (uint64_t)bytes);
  add_single_writer(&heap->range_blocks, (uint64_t)blocks);
}

bool named_ranges_add(struct hak_heap *heap, uintptr_t block) {
  size_t granule = granule_of(block);
  uint32_t entry = MAP_ENTRY_BIG_LIVE;
  /* A thread that frees the block that was here before may still be changing it; orders nothing
   * else.  Pairs with big_note_freed. */
  if (!cas_strong_acq_rel(&window.owner_map[granule], &entry, named_range_entry(heap)))
    return false;
  /* A live range is in no set, so its links are free. */
  range_link(&heap->first_range, range_record(granule), (uint32_t)granule);
  add_bytes(heap, (int64_t)bytes_of(granule), 1);
  return true;
}

static void take_out(struct hak_heap *heap, size_t granule) {
  add_bytes(heap, -(int64_t)bytes_of(granule), -1);
  add_single_writer(&heap->freed_blocks, 1);
  owner_map_set(granule, MAP_ENTRY_BIG_LIVE);
}

/* The answer holds while the latch is held. */
static bool is_block_of(const struct hak_heap *heap, uintptr_t block) {
  return range_block_begins_at(block) && owner_map_entry(block) == named_range_entry(heap);
}

/* The range of a heap that a fork cut off stays in a list that is never walked. */
bool named_ranges_remove(struct hak_heap *heap, uintptr_t block) {
  size_t granule = granule_of(block);
  bool is_listed = named_is(heap, NAMED_IN_USE);
  if (LIKELY(is_listed)) named_enter(heap);
  bool is_live = is_block_of(heap, block);
  if (LIKELY(is_live && is_listed)) range_unlink(&heap->first_range, range_record(granule));
  if (LIKELY(is_live)) take_out(heap, granule);
  if (LIKELY(is_listed)) named_leave(heap);
  if (UNLIKELY(!is_live)) pointer_fail("free", block);
  return is_live;
}

uintptr_t named_ranges_remove_any(struct hak_heap *heap) {
  size_t granule = heap->first_range;
  if (granule == NO_RANGE) return 0;
  range_unlink(&heap->first_range, range_record(granule));
  take_out(heap, granule);
  return range_block(granule);
}

static bool resize(struct hak_heap *heap, uintptr_t block, size_t size, struct counters *counters) {
  size_t granule = granule_of(block), before = bytes_of(granule), wanted = big_good_bytes(size);
  bool is_resized = (wanted <= before || named_allows(heap, wanted - before)) &&
                    resize_in_place(block, size, counters);
  add_bytes(heap, (int64_t)bytes_of(granule) - (int64_t)before, 0);
  named_note_grown(heap, 0);
  return is_resized;
}

bool named_ranges_resize(struct hak_heap *heap, uintptr_t block, size_t size,
                         struct counters *counters) {
  if (!named_is(heap, NAMED_IN_USE)) return false;
  named_enter(heap);
  bool is_resized = is_block_of(heap, block) && resize(heap, block, size, counters);
  named_leave(heap);
  return is_resized;
}
