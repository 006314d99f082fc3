#include "heap/allocate.h"

#include <errno.h>

#include "cache/caches.h"
#include "cache/class_figures.h"
#include "cache/divert.h"
#include "cache/fitted.h"
#include "cache/moving.h"
#include "cache/refill.h"
#include "checked/checked.h"
#include "checked/checked_range.h"
#include "config/options.h"
#include "heap/in_named.h"
#include "heap/sampling.h"
#include "heap/thread.h"
#include "heap/tracing.h"
#include "ranges/large.h"
#include "reclaim/due.h"
#include "reclaim/feasible.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"

static void note_large(struct heap *heap, const struct allocation *allocation, unsigned refilled) {
  unsigned class = class_of_aligned(allocation->size, allocation->alignment);
  class_figures_need(heap);
  class_figures_add(heap, class, refilled_blocks, refilled);
  class_figures_sampled(heap, class, allocation->size);
}

RESIDENT static void *take_range(struct heap *heap, struct allocation *allocation,
                                 bool is_growing) {
  struct large_request request = {
      .bytes = allocation->size,
      .alignment_bytes = allocation->alignment,
      .site = allocation->site,
      .tag = heap->owner.tag,
      .home = heap->owner.number,
      .is_growing = is_growing,
      .magazines = heap->ranges,
  };
  void *block = (void *)large_take(&request, &heap->owner.counters);
  allocation->is_zero = request.is_zero;
  if (block && !large_is_big(allocation->size, allocation->alignment))
    note_large(heap, allocation, request.refilled);
  return block;
}

/* For a block that may grow headroom is sought before a cached range: another copy would cost more
 * than the search. */
RESIDENT static void *range_allocate(struct heap *heap, struct allocation *allocation) {
  void *block = NULL;
  heap_enter(heap);
  if (allocation->is_growing) block = take_range(heap, allocation, true);
  if (!block) block = take_range(heap, allocation, false);
  heap_leave(heap);
  return block;
}

/* A refill frees nothing: of the slow paths that are one, this part looks for work that is due;
 * whether the next one but `paths` does. A thread whose magazines never miss again may have had
 * fewer, and needs the helper's ticks. */
enum { SLOW_PATHS_A_LOOK = 8 };
INLINE bool looks_after(const struct heap *heap, uint64_t paths) {
  return (load_relaxed(&heap->owner.slow_paths) + paths) % SLOW_PATHS_A_LOOK == 0;
}

INLINE void *take_slab_block(struct heap *heap, unsigned class, size_t size, size_t alignment) {
  struct magazine *magazine = &heap->magazines[class];
  heap_enter(heap);
  void *block = UNLIKELY(heap->is_moving) ? moving_take(heap, class) : magazine_pop(magazine);
  if (!block && batch_refill(heap, class)) {
    class_figures_sampled(heap, class, size);
    block = magazine_pop(magazine);
    fitted_vote(heap, class, round_up(size, alignment));
  }
  heap_leave(heap);
  return block;
}

static void *slab_allocate(struct heap *heap, unsigned class, struct allocation *allocation) {
  void *block = take_slab_block(heap, class, allocation->size, allocation->alignment);
  allocation->was_quick = !looks_after(heap, 0);
  if (allocation->was_quick) helper_start_when_worth();
  return block;
}

NOINLINE static void *guarded_allocate(struct heap *heap, struct allocation *allocation) {
  heap_enter(heap);
  void *block = checked_range_guard(heap, allocation);
  heap_leave(heap);
  return block;
}

/* ---- the ladder ------------------------------------------------------------------------------ */

enum { MAY, MUST };

/* RUNG(whose requests, whether it must serve them, how, "what it gives"): the first rung with a
 * block serves; where one that must has none, the request fails. The order: a block of a named heap
 * lies in that heap, whatever else is wanted of it; a sample or a guarded block, where there is
 * one, stands for a block of any rung below; and hardened mode has no magazines.
 *
 * Served before the ladder, with a few stores: by magazines, in hardened mode by a ready block
 * (malloc_missed), by the current slab of a named heap (heap_named_take). */
/* clang-format off */
#define REQUEST_LADDER(RUNG)                                                                                            \
  RUNG(UNLIKELY(allocation->named != NULL), MUST, heap_named_allocate(heap, allocation), "the named heap")              \
  RUNG(UNLIKELY(coins >= 0), MAY, sampling_take(heap, allocation), "the samples' heap")                                 \
  RUNG(UNLIKELY(options.guard), MAY, guarded_allocate(heap, allocation), "now and then, pages of its own")              \
  RUNG(UNLIKELY(owner_is_hardened(&heap->owner)), MUST, checked_allocate(heap, allocation), "the quarantine, a range")  \
  RUNG(class < SLAB_CLASS_COUNT, MUST, slab_allocate(heap, class, allocation), "the magazine, refilled")                \
  RUNG(true, MUST, range_allocate(heap, allocation), "Large and Big")
/* clang-format on */

INLINE void *climb(struct heap *heap, struct allocation *allocation, unsigned class, int coins) {
  allocation->is_zero = false;
#define RUNG(whose, must, how, what)           \
  if (whose) {                                 \
    void *block = how;                         \
    if ((must) == MUST || block) return block; \
  }
  REQUEST_LADDER(RUNG)
#undef RUNG
}

COLD static void *fail_without_memory(struct heap *heap) {
  count(heap_counters(heap), COUNT_enomem);
  errno = ENOMEM;
  return NULL;
}

/* True, once, when memory was given back, so that another climb may help. */
COLD static bool give_back(struct heap *heap, struct allocation *allocation) {
  if (allocation->is_final || !feasible_after_giving_back(heap, allocation)) return false;
  reclaim(heap, RECLAIM_PRESSURE);
  return allocation->is_final = true;
}

INLINE void *serve(struct heap *heap, struct allocation *allocation, unsigned class) {
  int coins = sampling_coins(heap, allocation);
  bool is_big = large_is_big(allocation->size, allocation->alignment);
  void *block = NULL;
  if (!is_big || LIKELY(feasible_at_all(allocation))) {
    do {
      block = climb(heap, allocation, class, coins);
    } while (UNLIKELY(!block) && give_back(heap, allocation));
  }
  if (UNLIKELY(!block)) return fail_without_memory(heap);
  if (!allocation->was_quick) {
    helper_start_when_worth();
    reclaim_when_due(heap);
  }
  if (UNLIKELY(coins != NOT_SAMPLED)) sampling_note(heap, allocation, block, coins);
  return block;
}

/* For a trace; the block of a thread without a heap is not recorded. */
INLINE void *noted(void *block, const struct allocation *allocation) {
  struct heap *heap = heap_of_thread;
  if (LIKELY(!heap_is_armed_by(heap, ARMED_BY_TRACE))) return block;
  return tracing_note(heap, block, allocation->size, allocation->alignment);
}

RESIDENT void *heap_allocate_in(struct hak_heap *named, struct allocation *allocation) {
  if (UNLIKELY(allocation->size > REQUEST_MAX_BYTES ||
               allocation->alignment > REQUEST_MAX_BYTES / 2))
    return fail_without_memory(NULL);
  unsigned class = slab_class_for(allocation->size, allocation->alignment);
  void *block = UNLIKELY(named != NULL) ? heap_named_take(named, class) : NULL;
  if (UNLIKELY(heap_of_thread == &empty_heap) && class < SLAB_CLASS_COUNT && !named)
    block = early_call(class, allocation->size, NULL);
  if (UNLIKELY(block)) return noted(block, allocation);
  allocation->named = named;
  struct heap *heap = heap_of_this_thread(), *borrowed = NULL;
  if (UNLIKELY(!heap) && heap_of_thread == &ended_heap) heap = borrowed = heap_borrow();
  if (UNLIKELY(!heap)) return fail_without_memory(NULL);
  block = serve(heap, allocation, class);
  if (UNLIKELY(borrowed != NULL)) caches_park(borrowed);
  return noted(block, allocation);
}

RESIDENT void *heap_allocate(struct allocation *allocation) {
  const struct heap *heap = heap_of_thread; /* of an empty one the rest is not in memory */
  return heap_allocate_in(heap_is_armed_by(heap, ARMED_BY_USE) ? heap->used : NULL, allocation);
}

/* ---- malloc ---------------------------------------------------------------------------------- */

/* Most misses: nothing but a block is wanted, and no other work is due. */
INLINE void *refill_only(struct heap *heap, size_t alignment, size_t size) {
  unsigned class = slab_class_for(size, alignment);
  bool is_all = class < SLAB_CLASS_COUNT && heap_is_real(heap) &&
                !heap_may_be_armed_by(heap, ARMED_BY_ANY) && !options.guard && !os_is_copy() &&
                !looks_after(heap, 1);
  if (UNLIKELY(!is_all)) return NULL;
  helper_start_when_worth();
  return take_slab_block(heap, class, size, alignment);
}

RESIDENT NOINLINE static void *malloc_missed(size_t alignment, size_t size, uint32_t site,
                                             enum maker maker) {
  struct heap *heap = heap_of_thread;
  void *block;
  if (UNLIKELY(window.hardened_bit))
    block = checked_take_ready(heap, size, alignment, maker);
  else if (UNLIKELY(tracing_is_plain(heap)))
    block = tracing_pop(heap, size, alignment);
  else
    block = refill_only(heap, alignment, size);
  if (LIKELY(block)) return block;
  struct allocation allocation = {
      .size = size, .alignment = alignment, .site = site, .maker = maker};
  return heap_allocate(&allocation);
}

RESIDENT NOINLINE void *heap_malloc_slow(size_t size, size_t place, struct heap *heap) {
  void *block;
  if (LIKELY(magazine_pops_passed(heap_magazine_at(heap, &place), &block))) return block;
  return malloc_missed(1, size, site_of_caller(CALLER_ADDRESS()), MADE_BY_MALLOC);
}

RESIDENT static void *malloc_large(size_t size) {
  const struct heap *heap = heap_of_thread;
  uint32_t site = site_of_caller(CALLER_ADDRESS());
  void *block = NULL;
  if (LIKELY(heap->ranges && size <= LARGE_MAX_BYTES && !heap_may_be_armed_by(heap, ARMED_BY_ANY)))
    block = (void *)large_take_own(heap->ranges, size, site, heap->owner.tag);
  return LIKELY(block != NULL) ? block : malloc_missed(1, size, site, MADE_BY_MALLOC);
}

INLINE void *malloc_at(size_t size, size_t place) {
  struct heap *heap = heap_of_thread;
  void *block;
  return LIKELY(heap_pops(heap, &place, &block)) ? block : heap_malloc_slow(size, place, heap);
}

RESIDENT NOINLINE static void *malloc_beyond_steps(size_t size) {
  if (UNLIKELY(size > MID_MAX_BYTES)) return malloc_large(size);
  return malloc_at(size, filling_class_of_size(size) * PLACES_A_CLASS);
}

RESIDENT NOINLINE void *heap_malloc_beyond_tiny(size_t size) {
  if (LIKELY(size <= FITTED_MAX_BYTES)) return malloc_at(size, mid_place_of_size(size));
  if (UNLIKELY(size > STEPPED_MAX_BYTES)) return malloc_beyond_steps(size);
  return malloc_at(size, stepped_class_of_size(size) * PLACES_A_CLASS);
}

RESIDENT void *heap_aligned(size_t alignment, size_t size, uint32_t site, enum maker maker) {
  unsigned class = slab_class_for(size, alignment);
  if (LIKELY(class < SLAB_CLASS_COUNT)) {
    struct heap *heap = heap_of_thread;
    size_t place = (size_t) class * PLACES_A_CLASS;
    void *block;
    if (LIKELY(heap_pops(heap, &place, &block) ||
               magazine_pops_passed(&heap->magazines[class], &block)))
      return block;
  }
  return malloc_missed(alignment, size, site, maker);
}
