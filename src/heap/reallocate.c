#include "heap/reallocate.h"

#include <errno.h>

#include "checked/checked.h"
#include "checked/checked_range.h"
#include "heap/kinds.h"
#include "heap/sampling.h"
#include "heap/thread.h"
#include "named/named_ranges.h"
#include "profile/recording.h"
#include "ranges/big.h"
#include "reclaim/due.h"

static bool resize_never(uintptr_t block, size_t size, uint32_t entry) {
  (void)block, (void)size, (void)entry;
  return false;
}

static bool resize_range(uintptr_t block, size_t size, uint32_t entry) {
  struct heap *heap = heap_of_this_thread();
  const struct range_info *info = range_info(granule_of(block));
  uint32_t granules = info->granules;
  bool is_resized =
      UNLIKELY(map_entry_is_named(entry))
          ? named_ranges_resize(named_of_entry(entry), block, size, heap_counters(heap))
          : resize_in_place(block, size, heap_counters(heap));
  if (!is_resized) return false;
  sampling_note_resized(heap, (void *)block, size); /* NOLINT(performance-no-int-to-ptr) */
  if (info->granules != granules) reclaim_when_due(heap_of_thread);
  return true;
}

/* For a profile a range counts as any other block if it is not a named heap's; of other blocks it
 * counts only the requested bytes. */
static bool resize_hardened(uintptr_t block, size_t size, uint32_t entry) {
  struct heap *heap = heap_of_this_thread();
  void *pointer = (void *)block; /* NOLINT(performance-no-int-to-ptr) */
  if (heap) heap_enter(heap);
  bool is_kept = checked_resize(block, size);
  bool may_resize = kind_of_entry(entry) == KIND_hardened_range &&
                    !range_info(granule_of(block))->is_guarded &&
                    checked_class_of(size, 1) == SLAB_CLASS_COUNT;
  bool is_resized = !is_kept && may_resize && checked_range_resize(heap, block, size);
  if (heap) heap_leave(heap);
  if (is_kept) sampling_note_kept(pointer, size);
  if (!is_resized) return is_kept;
  recording_remove(round_down(block, GRANULE_BYTES), pointer);
  sampling_note_resized(heap, pointer, size);
  return true;
}

bool heap_resize(void *pointer, size_t size) {
  uintptr_t block = (uintptr_t)pointer;
  uint32_t entry = owner_map_entry(block);
  switch (kind_of_entry(entry)) {
#define KIND(kind, free, ask, resize) \
  case kind: return resize(block, size, entry);
    KINDS /* NOLINT(bugprone-branch-clone): rows that are served alike */
#undef KIND
  }
  return false;
}

/* A range is cut to the smallest size that is still a range. */
COLD void *heap_keep(void *block, size_t size, int errno_before) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  struct heap *heap = heap_of_this_thread();
  if (kind_knows_request(kind_of_entry(entry))) {
    if (heap) heap_enter(heap);
    checked_shrink((uintptr_t)block, size);
    if (heap) heap_leave(heap);
  } else {
    heap_resize(block, MID_MAX_BYTES + 1);
  }
  errno = errno_before;
  return sampling_note_kept(block, size);
}

void heap_become_mallocs(void *block) {
  struct heap *heap = heap_of_this_thread();
  if (!is_in_window((uintptr_t)block)) return;
  if (heap) heap_enter(heap);
  checked_become_mallocs((uintptr_t)block);
  if (heap) heap_leave(heap);
}

static void *move_plain(uintptr_t *target, uintptr_t source, size_t bytes,
                        struct counters *counters) {
  uintptr_t block = granule_address(granule_of(*target)) + source % os_page_bytes();
  return big_move_pages(target, block, source, bytes, counters) ? (void *)block : NULL;
}

void *heap_move_big(void **target, void *source, size_t bytes) {
  struct heap *heap = heap_of_this_thread();
  uintptr_t block = (uintptr_t)*target, from = (uintptr_t)source;
  void *moved = UNLIKELY(kind_of_entry(owner_map_entry(from)) == KIND_hardened_range)
                    ? (void *)checked_range_move(&block, from, bytes, heap_counters(heap))
                    : move_plain(&block, from, bytes, heap_counters(heap));
  if (UNLIKELY(!block)) {
    recording_remove(round_down((uintptr_t)*target, GRANULE_BYTES), *target); /* it is lost */
    *target = NULL;
  }
  return moved;
}
