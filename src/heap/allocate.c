#include "heap/allocate.h"

#include <errno.h>

#include "cache/caches.h"
#include "cache/class_figures.h"
#include "cache/divert.h"
#include "cache/flush.h"
#include "cache/refill.h"
#include "checked/checked.h"
#include "config/options.h"
#include "guard/guard_sampler.h"
#include "heap/in_named.h"
#include "heap/lifecycle.h"
#include "heap/sampling.h"
#include "large/large.h"
#include "reclaim/due.h"
#include "reclaim/feasible.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"

static void *magazine_pop(struct magazine *magazine) {
  if (magazine->top == magazine_base(magazine)) return NULL;
  magazine_set_top(magazine, magazine->top - 1);
  return *magazine->top;
}

static void note_large(struct heap *heap, const struct allocation *allocation, unsigned refilled) {
  unsigned class = class_of_aligned(allocation->size, allocation->alignment);
  class_figures_need(heap);
  class_figures_refilled(heap, class, refilled);
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

/* For a block that may grow headroom is sought before a cached range: another copy would cost more than the search. */
RESIDENT static void *range_allocate(struct heap *heap, struct allocation *allocation) {
  void *block = NULL;
  if (allocation->is_growing) block = take_range(heap, allocation, true);
  return block ? block : take_range(heap, allocation, false);
}

static void *slab_allocate(struct heap *heap, unsigned class, size_t size) {
  struct magazine *magazine = &heap->magazines[class];
  void *block = magazine_pop(magazine);
  if (block || !batch_refill(heap, class)) return block;
  class_figures_sampled(heap, class, size);
  return magazine_pop(magazine);
}

RESIDENT static void *try_allocate(struct heap *heap, struct allocation *allocation) {
  if (UNLIKELY(owner_is_hardened(&heap->owner))) return checked_allocate(heap, allocation);
  unsigned class = class_of_aligned(allocation->size, allocation->alignment);
  if (class >= SLAB_CLASS_COUNT) return range_allocate(heap, allocation);
  allocation->is_zero = false;
  return slab_allocate(heap, class, allocation->size);
}

COLD static void *fail_without_memory(struct heap *heap) {
  count(heap_counters(heap), COUNT_enomem);
  errno = ENOMEM;
  return NULL;
}

RESIDENT static void *allocate_plain(struct heap *heap, struct allocation *allocation) {
  void *block = NULL;
  if (UNLIKELY(options.guard))
    block = guard_sampler_take(&heap->guard_sampler, allocation, heap_counters(heap));
  if (UNLIKELY(block)) return block;
  if (large_is_big(allocation->size, allocation->alignment) &&
      UNLIKELY(!feasible_at_all(allocation)))
    return fail_without_memory(heap);
  heap_enter(heap);
  block = try_allocate(heap, allocation);
  if (UNLIKELY(!block) && feasible_after_giving_back(heap, allocation)) {
    reclaim(heap, RECLAIM_PRESSURE);
    block = try_allocate(heap, allocation);
  }
  heap_leave(heap);
  if (UNLIKELY(!block)) return fail_without_memory(heap);
  helper_start_when_worth();
  reclaim_when_due(heap);
  return block;
}

NOINLINE static void *allocate_sample(struct heap *heap, struct allocation *allocation) {
  int coins = sampling_throw_coins(heap);
  void *block = coins < 0 ? NULL : sampling_take(heap, allocation);
  if (!block) block = allocate_plain(heap, allocation);
  if (block) sampling_note(heap, allocation, block, coins);
  return block;
}

/* While a profile is on, or a named heap in use.  While a named heap is in use no lot is counted: the thread's own magazines must not
 * serve the request. */
NOINLINE static void *allocate_armed(struct heap *heap, struct allocation *allocation) {
  struct hak_heap *used = heap->used;
  if (used && !allocation->is_own) return heap_named_allocate(used, allocation);
  bool is_sample = used ? sampling_counts_one(heap, allocation) : sampling_counts(heap, allocation);
  return is_sample ? allocate_sample(heap, allocation) : allocate_plain(heap, allocation);
}

RESIDENT static void *allocate_from(struct heap *heap, struct allocation *allocation) {
  if (sampler_is_wanted(&heap->sampler)) sampling_look(heap);
  return UNLIKELY(heap->is_armed) ? allocate_armed(heap, allocation)
                                  : allocate_plain(heap, allocation);
}

RESIDENT void *heap_allocate(struct allocation *allocation) {
  if (UNLIKELY(allocation->size > REQUEST_MAX_BYTES ||
               allocation->alignment > REQUEST_MAX_BYTES / 2))
    return fail_without_memory(NULL);
  if (UNLIKELY(window.hardened_class) && allocation->alignment == 1) {
    allocation->is_zero = false;
    void *block = checked_malloc_ready(heap_of_thread, allocation->size, allocation->maker);
    if (LIKELY(block)) return block;
  }
  struct heap *heap = heap_of_this_thread();
  if (LIKELY(heap)) return allocate_from(heap, allocation);
  heap = heap_borrow();
  if (!heap) return fail_without_memory(NULL);
  void *block = allocate_from(heap, allocation);
  caches_park(heap);
  return block;
}

void *heap_allocate_beside(const void *block, struct allocation *allocation) {
  struct hak_heap *named = named_of_entry(owner_map_entry((uintptr_t)block));
  allocation->is_own = true;
  return named ? heap_named_allocate(named, allocation) : heap_allocate(allocation);
}

RESIDENT NOINLINE static void *malloc_missed(size_t size, uint32_t site) {
  if (UNLIKELY(window.hardened_class)) {
    void *block = checked_malloc_ready(heap_of_thread, size, MADE_BY_MALLOC);
    if (LIKELY(block)) return block;
  }
  struct allocation allocation = {.size = size, .alignment = 1, .site = site};
  return heap_allocate(&allocation);
}

RESIDENT NOINLINE void *heap_malloc_slow(size_t size, char *place) {
  void *block;
  if (LIKELY(magazine_pops_passed(magazine_at(place), &block))) return block;
  return malloc_missed(size, site_of_caller(CALLER_ADDRESS()));
}

RESIDENT static void *malloc_large(size_t size) {
  const struct heap *heap = heap_of_thread;
  uint32_t site = site_of_caller(CALLER_ADDRESS());
  void *block = NULL;
  if (LIKELY(heap->ranges && size <= LARGE_MAX_BYTES && !heap_may_be_armed(heap)))
    block = (void *)large_take_own(heap->ranges, size, site, heap->owner.tag);
  return LIKELY(block != NULL) ? block : malloc_missed(size, site);
}

RESIDENT NOINLINE static void *malloc_beyond_steps(size_t size) {
  if (UNLIKELY(size > MID_MAX_BYTES)) return malloc_large(size);
  char *place = heap_place(heap_of_thread, filling_class_of_size(size));
  void *block;
  return LIKELY(place_pops(place, &block)) ? block : heap_malloc_slow(size, place);
}

RESIDENT NOINLINE void *heap_malloc_beyond_tiny(size_t size) {
  if (UNLIKELY(size > STEPPED_MAX_BYTES)) return malloc_beyond_steps(size);
  char *place = heap_place(heap_of_thread, stepped_class_of_size(size));
  void *block;
  return LIKELY(place_pops(place, &block)) ? block : heap_malloc_slow(size, place);
}

RESIDENT void *heap_aligned(size_t alignment, size_t size, uint32_t site, enum maker maker) {
  unsigned class = size <= MID_MAX_BYTES ? slab_class_of(size, alignment) : SLAB_CLASS_COUNT;
  if (LIKELY(class < SLAB_CLASS_COUNT)) {
    char *place = heap_place(heap_of_thread, class);
    void *block;
    if (LIKELY(place_pops(place, &block) || magazine_pops_passed(magazine_at(place), &block)))
      return block;
  }
  struct allocation allocation = {
      .size = size, .alignment = alignment, .site = site, .maker = maker};
  return heap_allocate(&allocation);
}
