#include "heap/free.h"

#include "cache/class_figures.h"
#include "cache/divert.h"
#include "cache/flush.h"
#include "cache/moving.h"
#include "checked/checked.h"
#include "config/limits.h"
#include "config/options.h"
#include "foreign/pointer.h"
#include "hardened/nothing.h"
#include "heap/in_named.h"
#include "heap/kinds.h"
#include "heap/sampling.h"
#include "heap/thread.h"
#include "heap/tracing.h"
#include "profile/control.h"
#include "ranges/large.h"
#include "reclaim/due.h"
#include "reclaim/steps.h"
#include "slab/batch_free.h"

/* Until a class has a magazine, its first freed block goes to its slab: only the slab can tell that
 * the thread, while it had no heap, has freed it before. */
RESIDENT static void push_or_flush(struct heap *heap, unsigned class, void *block) {
  struct magazine *magazine = &heap->magazines[class];
  void **at = magazine->top;
  bool is_first = !magazine_capacity(magazine) && os_is_multi_threaded() && (!*at || *at == block);
  if (UNLIKELY(is_first) && starter_give(class, *at = block)) return;
  if (UNLIKELY(heap->is_moving)) {
    moving_give(heap, class, block);
    return;
  }
  if (magazine->top == magazine->end) batch_flush(heap, class);
  /* The flush may have freed the block: then it was freed twice. */
  if (UNLIKELY(!map_entry_is_live(owner_map_entry((uintptr_t)block))))
    pointer_fail("free", (uintptr_t)block);
  else
    magazine_push(magazine, magazine->top, block);
}

/* A call stands until it is answered. */
RESIDENT static void leave_heap(struct heap *heap, unsigned class) {
  heap_leave(heap);
  enum attention why = heap_attention(heap);
  if (UNLIKELY(why > HEAP_TRACE) && why != HEAP_CALL) sampling_attend(heap, class);
}

RESIDENT static void free_into_magazine(struct heap *heap, uint32_t entry, void *block) {
  unsigned class = map_slab_class(entry);
  if (UNLIKELY(magazine_ends_with(&heap->magazines[class], block))) { /* twice in a row */
    pointer_fail("free", (uintptr_t)block);
    return;
  }
  uint64_t now_ms = reclaim_caches_when_due(heap);
  heap_enter(heap);
  push_or_flush(heap, class, block);
  leave_heap(heap, class);
  reclaim_rest_when_due(heap, now_ms);
}

RESIDENT NOINLINE static bool make_magazines(struct heap *heap) {
  if (heap_is_real(heap) && !options.guard) show(heap, ranges, range_magazines_make());
  return heap->ranges;
}

/* Not with a hard limit, which counts only the requested bytes of a range. */
RESIDENT static bool keep_large(struct heap *heap, uint32_t entry, void *block, uint64_t now_ms) {
  if (limits.hard_bytes) return false;
  if (UNLIKELY(!heap->ranges) && !make_magazines(heap)) return false;
  return large_keep_own(heap->ranges, (uintptr_t)block, entry, now_ms);
}

/* Flushes half of the magazine's ranges. The block may have been among them: then two threads have
 * freed it at once. */
static bool keep_after_flush(struct heap *heap, uint32_t entry, void *block) {
  unsigned class = map_class(entry);
  if (class >= CLASS_COUNT || !heap->ranges || heap_attention(heap) > HEAP_WAIT) return false;
  unsigned ranges = range_magazine_flush(heap->ranges, class, granule_of((uintptr_t)block),
                                         &heap->owner.counters);
  class_figures_add(heap, class, flushed_blocks, ranges);
  return owner_map_entry((uintptr_t)block) == entry &&
         keep_large(heap, entry, block, os_now_coarse_ms());
}

NOINLINE static void free_range(void *block, uint32_t entry, enum maker maker) {
  (void)maker;
  struct heap *heap = heap_of_this_thread();
  unsigned class = map_class(entry);
  bool is_block = range_block_begins_at((uintptr_t)block);
  if (LIKELY(is_block)) sampling_note_freed_range((uintptr_t)block);
  if (heap) heap_enter(heap);
  bool is_kept = is_block && heap && keep_after_flush(heap, entry, block);
  if (!is_kept && UNLIKELY(!is_block || !large_give((uintptr_t)block, heap_counters(heap))))
    pointer_fail("free", (uintptr_t)block);
  else if (!is_kept && heap && class < CLASS_COUNT)
    class_figures_add(heap, class, flushed_blocks, 1);
  if (heap) leave_heap(heap, class);
  reclaim_when_due(heap_of_thread);
}

RESIDENT NOINLINE static void free_slab(void *block, uint32_t entry, enum maker maker) {
  (void)maker;
  if (UNLIKELY(heap_of_thread == &empty_heap) && early_call(map_slab_class(entry), 0, block))
    return;
  struct heap *heap = heap_of_this_thread();
  if (UNLIKELY(!heap)) { /* the thread's heap is gone, or cannot be made: straight home */
    batch_free(NULL, &block, 1, &stray_counters);
    reclaim_when_due(heap_of_thread);
  } else {
    free_into_magazine(heap, entry, block);
  }
}

/* A program whose requests all come from its magazines takes no other slow path. */
RESIDENT NOINLINE static void free_large(void *block, uint32_t entry, enum maker maker) {
  struct heap *heap = heap_of_thread;
  uint64_t now_ms = os_now_coarse_ms();
  if (heap_attention(heap) > HEAP_WAIT || !keep_large(heap, entry, block, now_ms)) {
    free_range(block, entry, maker);
  } else if (UNLIKELY(reclaim_is_due(now_ms))) {
    os_settle_copy();
    reclaim_when_due(heap_of_thread);
  }
}

/* ---- blocks of other kinds ------------------------------------------------------------------- */

static void free_hardened_slab(void *block, uint32_t entry, enum maker maker) {
  os_settle_copy();
  struct heap *heap = heap_of_thread;
  if (UNLIKELY(!heap->quarantine)) heap = heap_of_this_thread();
  if (UNLIKELY(checked_free(heap, (uintptr_t)block, entry, maker)))
    reclaim_when_due(heap_of_thread);
}

static void free_hardened_range(void *block, uint32_t entry, enum maker maker) {
  os_settle_copy();
  checked_free_range(heap_of_this_thread(), (uintptr_t)block, entry, maker, "free");
  reclaim_when_due(heap_of_thread);
}

static void free_nothing(void *block, uint32_t entry, enum maker maker) {
  (void)entry, (void)maker;
  nothing_check((uintptr_t)block, "free", true);
}

static void free_none(void *block, uint32_t entry, enum maker maker) {
  (void)entry, (void)maker;
  pointer_fail("free", (uintptr_t)block);
}

static void free_foreign(void *block, uint32_t entry, enum maker maker) {
  const struct os_libc_malloc *libc = os_libc_malloc();
  if (!libc->free || !pointer_is_libc_block((uintptr_t)block)) {
    free_none(block, entry, maker);
    return;
  }
  count(heap_counters(heap_of_thread), COUNT_foreign_frees);
  libc->free(block);
}

INLINE void free_as(enum kind kind, void *block, uint32_t entry, enum maker maker) {
  switch (kind) {
#define KIND(which, give, ask, resize) \
  case which: give(block, entry, maker); break;
    KINDS
#undef KIND
  }
}

RESIDENT NOINLINE static void free_elsewhere(void *block, uint32_t entry, enum maker maker) {
  free_as(kind_elsewhere((uintptr_t)block), block, entry, maker);
}

/* Calls nothing but as its last step, so that the most frequent frees save no registers. */
INLINE void free_by_kind(void *block, enum maker maker) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  enum kind kind = kind_of_entry(entry);
  if (UNLIKELY(kind == KIND_none))
    free_elsewhere(block, entry, maker);
  else
    free_as(kind, block, entry, maker);
}

/* A thread that was poked follows before its block goes, also one that has had no heap: so its
 * first free is recorded, too. */
static bool is_traced(void) {
  struct heap *heap = heap_of_thread;
  if (heap == &empty_heap && profile_wants_trace(os_now_coarse_ms())) heap = heap_of_this_thread();
  if (!heap || !heap_is_real(heap)) return false;
  if (heap_attention(heap) > HEAP_TRACE && sampler_is_wanted(&heap->sampler)) sampling_look(heap);
  return heap_is_armed_by(heap, ARMED_BY_TRACE);
}

NOINLINE static void free_traced(void *block, enum maker maker) {
  bool is_noted = tracing_is_plain(heap_of_thread) || is_traced();
  if (!is_noted || !tracing_free(heap_of_thread, block)) free_by_kind(block, maker);
}

/* While memory waits: as the fast path would, but for a look now and then. Frees that are recorded,
 * or that no magazine serves, keep their way. */
INLINE bool free_waiting(void *block) {
  struct heap *heap = heap_of_thread;
  if (LIKELY(heap_attention(heap) != HEAP_WAIT)) return false;
  if (UNLIKELY(heap_is_armed_by(heap, ARMED_BY_TRACE | ARMED_BY_MOVING))) return false;
  size_t place = map_threads_place(owner_map_entry((uintptr_t)block));
  return place < PLACES_END && steps_pass() && heap_takes(heap, place, block);
}

RESIDENT NOINLINE void heap_free_made(void *block, enum maker maker) {
  if (!block || free_waiting(block)) return;
  if (UNLIKELY(load_relaxed(&profile_control.trace_lease_ms)))
    free_traced(block, maker);
  else
    free_by_kind(block, maker);
}
RESIDENT NOINLINE void heap_free_slow(void *block) { heap_free_made(block, MADE_BY_MALLOC); }
RESIDENT NOINLINE void heap_delete_slow(void *block) { heap_free_made(block, MADE_BY_NEW); }
NOINLINE void heap_delete_array_slow(void *block) { heap_free_made(block, MADE_BY_NEW_ARRAY); }
