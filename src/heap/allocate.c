#include "heap/allocate.h"

#include <errno.h>

#include "cache/caches.h"
#include "cache/capacity.h"
#include "cache/class_figures.h"
#include "cache/flush.h"
#include "cache/guard_sampler.h"
#include "cache/refill.h"
#include "config/options.h"
#include "hardened/checked.h"
#include "heap/lifecycle.h"
#include "large/big.h"
#include "large/density.h"
#include "large/large.h"
#include "reclaim/due.h"
#include "reclaim/feasible.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"

static void *magazine_pop(struct magazine *magazine) {
  return magazine->top == magazine->base ? NULL : *--magazine->top;
}

static void *pop_aligned(struct magazine *magazine, size_t alignment) {
  bool fits =
      magazine->top != magazine->base && ((uintptr_t)magazine->top[-1] & (alignment - 1)) == 0;
  return fits ? *--magazine->top : NULL;
}

/* Large blocks come one at a time: there is no batch to amortise, and a block may be a megabyte. */
static void *large_allocate(struct heap *heap, unsigned class, struct allocation *allocation,
                            enum range_source source) {
  struct large_request request = {
      .class = class,
      .bytes = allocation->size,
      .alignment_bytes = allocation->alignment,
      .site = allocation->site,
      .tag = heap->owner.tag,
      .home = heap->owner.number,
      .source = source,
  };
  class_figures_need(heap);
  void *block = (void *)large_take(&request, &heap->owner.counters);
  allocation->is_zero = request.is_zero;
  if (!block) return NULL;
  heap->large_bytes_out += (int64_t)class_bytes(class);
  class_figures_refilled(heap, class, 1);
  class_figures_sampled(heap, class, allocation->size);
  return block;
}

static void *big_allocate(struct heap *heap, struct allocation *allocation,
                          enum range_source source) {
  struct big_request request = {
      .bytes = allocation->size,
      .alignment_bytes = allocation->alignment,
      .site = allocation->site,
      .home = heap->owner.number,
      .source = source,
  };
  void *block = (void *)big_take(&request, &heap->owner.counters);
  allocation->is_zero = request.is_zero;
  return block;
}

RESIDENT static void *allocate_from_ranges(struct heap *heap, unsigned class,
                                           struct allocation *allocation,
                                           enum range_source source) {
  return class < CLASS_COUNT ? large_allocate(heap, class, allocation, source)
                             : big_allocate(heap, allocation, source);
}

/* Before a magazine's block: to be copied once more costs more than the search. */
static void *allocate_roomy(struct heap *heap, unsigned class, struct allocation *allocation) {
  return allocation->is_growing
             ? allocate_from_ranges(heap, class, allocation, FROM_FREED_WITH_HEADROOM)
             : NULL;
}

/* The system is asked last, when nothing that lies in the thread's own magazines helps either; blocks that
 * are mostly untouched cost less whole than merged. */
RESIDENT static void *allocate_range(struct heap *heap, unsigned class,
                                     struct allocation *allocation) {
  if (!density_is_low() && capacity_cached_bytes(heap, true) > 0) {
    void *block = allocate_from_ranges(heap, class, allocation, FROM_FREED);
    if (block) return block;
    flush_large(heap);
  }
  return allocate_from_ranges(heap, class, allocation, FROM_ANY);
}

static void *slab_allocate(struct heap *heap, unsigned class, size_t size) {
  struct magazine *magazine = &heap->magazines[class];
  void *block = magazine_pop(magazine);
  if (block || !batch_refill(heap, class)) return block;
  class_figures_sampled(heap, class, size);
  return magazine_pop(magazine);
}

static bool is_big_request(const struct allocation *allocation) {
  return allocation->size > LARGE_MAX_BYTES || allocation->alignment > LARGE_MAX_BYTES;
}

RESIDENT static void *try_allocate(struct heap *heap, struct allocation *allocation) {
  size_t size = allocation->size, alignment = allocation->alignment;
  if (UNLIKELY(options.harden)) return checked_allocate(heap, allocation);
  allocation->is_zero = false;
  bool is_big = is_big_request(allocation);
  unsigned class = is_big ? CLASS_COUNT : class_of_aligned(size, alignment);
  if (class < SLAB_CLASS_COUNT) return slab_allocate(heap, class, size);
  void *block = allocate_roomy(heap, class, allocation);
  if (block || is_big) return block ? block : allocate_range(heap, class, allocation);
  block = pop_aligned(&heap->magazines[class], alignment);
  if (block) return block;
  capacity_note_refill(heap, class);
  return allocate_range(heap, class, allocation);
}

COLD static void *fail_without_memory(struct heap *heap) {
  count(heap_counters(heap), COUNT_enomem);
  errno = ENOMEM;
  return NULL;
}

RESIDENT static void *allocate_from(struct heap *heap, struct allocation *allocation) {
  void *block = NULL;
  if (UNLIKELY(options.guard))
    block = guard_sampler_take(&heap->guard_sampler, allocation, heap_counters(heap));
  if (UNLIKELY(block)) return block;
  if (is_big_request(allocation) && UNLIKELY(!feasible_at_all(allocation)))
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

RESIDENT void *heap_allocate(struct allocation *allocation) {
  if (UNLIKELY(allocation->size > REQUEST_MAX_BYTES ||
               allocation->alignment > REQUEST_MAX_BYTES / 2))
    return fail_without_memory(NULL);
  if (UNLIKELY(options.harden) && allocation->alignment == 1) {
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

RESIDENT NOINLINE void *heap_malloc_slow(size_t size) {
  if (UNLIKELY(options.harden)) {
    void *block = checked_malloc_ready(heap_of_thread, size, MADE_BY_MALLOC);
    if (LIKELY(block)) return block;
  }
  struct allocation allocation = {
      .size = size, .alignment = 1, .site = site_of_caller(CALLER_ADDRESS())};
  return heap_allocate(&allocation);
}

RESIDENT NOINLINE void *heap_malloc_beyond_tiny(size_t size) {
  if (UNLIKELY(size > LARGE_MAX_BYTES)) return heap_malloc_slow(size);
  unsigned class = size <= MID_MAX_BYTES ? mid_class_of_size(size) : large_class_of_size(size);
  struct magazine *magazine = &heap_of_thread->magazines[class];
  void **top = magazine->top;
  if (UNLIKELY(top == magazine->base)) return heap_malloc_slow(size);
  magazine->top = top - 1;
  return top[-1];
}

RESIDENT void *heap_aligned(size_t alignment, size_t size, uint32_t site) {
  bool is_in_slabs = size <= MID_MAX_BYTES && alignment <= MID_MAX_BYTES;
  void *block =
      is_in_slabs ? magazine_pop(&heap_of_thread->magazines[slab_class_of(size, alignment)]) : NULL;
  if (LIKELY(block)) return block;
  struct allocation allocation = {.size = size, .alignment = alignment, .site = site};
  return heap_allocate(&allocation);
}
