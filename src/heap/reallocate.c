#include "heap/reallocate.h"

#include <errno.h>

#include "config/options.h"
#include "hardened/checked.h"
#include "heap/lifecycle.h"
#include "heap/sampling.h"
#include "large/big.h"
#include "large/resize.h"
#include "named/named_ranges.h"
#include "profile/recording.h"
#include "reclaim/due.h"

static bool resize_checked(struct heap *heap, void *block, size_t size) {
  if (heap) heap_enter(heap);
  bool is_resized = checked_resize((uintptr_t)block, size);
  if (heap) heap_leave(heap);
  if (is_resized) sampling_note_kept(block, size);
  return is_resized;
}

bool heap_resize(void *block, size_t size) {
  if (!is_in_window((uintptr_t)block)) return false; /* a guarded one */
  struct heap *heap = heap_of_this_thread();
  uint32_t entry = owner_map_entry((uintptr_t)block);
  bool is_named = map_entry_is_named(entry);
  if (UNLIKELY(options.harden)) return resize_checked(heap, block, size);
  const struct range_info *info = range_info(granule_of((uintptr_t)block));
  uint32_t granules = info->granules;
  bool is_resized =
      UNLIKELY(is_named)
          ? named_ranges_resize(named_of_entry(entry), (uintptr_t)block, size, heap_counters(heap))
          : resize_in_place((uintptr_t)block, size, heap_counters(heap));
  if (!is_resized) return false;
  sampling_note_resized(heap, block, size);
  if (info->granules != granules) reclaim_when_due(heap_of_thread);
  return true;
}

/* A range gives up all but what is still one. */
COLD void *heap_keep(void *block, size_t size, int errno_before) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  struct heap *heap = heap_of_this_thread();
  if (options.harden && map_entry_is_live(entry)) {
    if (heap) heap_enter(heap);
    checked_shrink((uintptr_t)block, size);
    if (heap) heap_leave(heap);
  } else if (map_entry_is_live(entry) && map_slab_class(entry) >= SLAB_CLASS_COUNT) {
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

void *heap_move_big(void **target, void *source, size_t bytes) {
  if (UNLIKELY(options.harden)) return NULL; /* the pages have guards among them */
  struct heap *heap = heap_of_this_thread();
  uintptr_t block = (uintptr_t)*target;
  void *moved = (void *)big_move_pages(&block, (uintptr_t)source, bytes, heap_counters(heap));
  if (UNLIKELY(!block)) {
    recording_remove(round_down((uintptr_t)*target, GRANULE_BYTES), *target); /* it is lost */
    *target = NULL;
  }
  return moved;
}
