#include "heap/slow_path.h"

#include <errno.h>

#include "config/options.h"
#include "guard/guarded.h"
#include "guard/nothing.h"
#include "guard/pointer.h"
#include "heap/batch.h"
#include "heap/capacity.h"
#include "heap/checked.h"
#include "heap/class_figures.h"
#include "heap/fast_path.h"
#include "heap/feasible.h"
#include "heap/guard_sampler.h"
#include "heap/helper.h"
#include "heap/lifecycle.h"
#include "heap/relief.h"
#include "heap/remote_buffer.h"
#include "heap/reuse.h"
#include "heap/scavenge.h"
#include "heap/starter.h"
#include "large/big.h"
#include "large/density.h"
#include "large/large.h"
#include "large/resize.h"
#include "report/report.h"
#include "slab/slab.h"

/* ---- malloc ------------------------------------------------------------------------------------------ */

static void *pop(struct magazine *magazine) {
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

static void *allocate_from_ranges(struct heap *heap, unsigned class, struct allocation *allocation,
                                  enum range_source source) {
  return class < CLASS_COUNT ? large_allocate(heap, class, allocation, source)
                             : big_allocate(heap, allocation, source);
}

/* Before a magazine's block: to be copied once more costs more than the search. */
static void *allocate_roomy(struct heap *heap, unsigned class, struct allocation *allocation) {
  return allocation->is_growing ? allocate_from_ranges(heap, class, allocation, FROM_FREED_WITH_HEADROOM) : NULL;
}

/* The system is asked last, when nothing that lies in the thread's own magazines helps either; blocks that
 * are mostly untouched cost less whole than merged. */
static void *allocate_range(struct heap *heap, unsigned class, struct allocation *allocation) {
  if (!density_is_low() && relief_of_ranges_is_possible(heap)) {
    void *block = allocate_from_ranges(heap, class, allocation, FROM_FREED);
    if (block) return block;
    relief_give_ranges(heap);
  }
  return allocate_from_ranges(heap, class, allocation, FROM_ANY);
}

/* The smallest class whose blocks have the alignment; Large blocks begin at granules. */
static unsigned aligned_class(size_t size, size_t alignment) {
  return size > MID_MAX_BYTES ? large_class_of_size(size) : slab_class_of(size, alignment);
}

static void *slab_allocate(struct heap *heap, unsigned class, size_t size) {
  struct magazine *magazine = &heap->magazines[class];
  void *block = pop(magazine);
  if (block || !batch_refill(heap, class)) return block;
  class_figures_sampled(heap, class, size);
  return pop(magazine);
}

static bool is_big_request(const struct allocation *allocation) {
  return allocation->size > LARGE_MAX_BYTES || allocation->alignment > LARGE_MAX_BYTES;
}

static void *try_allocate(struct heap *heap, struct allocation *allocation) {
  size_t size = allocation->size, alignment = allocation->alignment;
  if (UNLIKELY(options.harden)) return checked_allocate(heap, allocation);
  allocation->is_zero = false;
  bool is_big = is_big_request(allocation);
  unsigned class = is_big ? CLASS_COUNT : aligned_class(size, alignment);
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

static void *allocate_from(struct heap *heap, struct allocation *allocation) {
  void *block = guard_sampler_take(heap, allocation);
  if (UNLIKELY(block)) return block;
  if (is_big_request(allocation) && UNLIKELY(!feasible_at_all(allocation)))
    return fail_without_memory(heap);
  heap_enter(heap);
  block = try_allocate(heap, allocation);
  if (UNLIKELY(!block) && feasible_after_giving_back(heap, allocation)) {
    scavenge_under_pressure(heap);
    block = try_allocate(heap, allocation);
  }
  heap_leave(heap);
  if (UNLIKELY(!block)) return fail_without_memory(heap);
  helper_start_when_worth();
  scavenge_when_due(heap);
  return block;
}

void *heap_allocate(struct allocation *allocation) {
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
  heap_return(heap);
  return block;
}

NOINLINE void *heap_malloc_slow(size_t size) {
  struct allocation allocation = {
      .size = size, .alignment = 1, .site = site_of_caller(CALLER_ADDRESS())};
  return heap_allocate(&allocation);
}

NOINLINE void *heap_malloc_beyond_tiny(size_t size) {
  if (UNLIKELY(size > LARGE_MAX_BYTES)) return heap_malloc_slow(size);
  unsigned class = size <= MID_MAX_BYTES ? mid_class_of_size(size) : large_class_of_size(size);
  struct magazine *magazine = &heap_of_thread->magazines[class];
  void **top = magazine->top;
  if (UNLIKELY(top == magazine->base)) return heap_malloc_slow(size);
  magazine->top = top - 1;
  return top[-1];
}

void *heap_aligned(size_t alignment, size_t size, uint32_t site) {
  bool is_in_slabs = size <= MID_MAX_BYTES && alignment <= MID_MAX_BYTES;
  void *block =
      is_in_slabs ? pop(&heap_of_thread->magazines[slab_class_of(size, alignment)]) : NULL;
  if (LIKELY(block)) return block;
  struct allocation allocation = {.size = size, .alignment = alignment, .site = site};
  return heap_allocate(&allocation);
}

/* ---- free -------------------------------------------------------------------------------------------- */

static void push(struct heap *heap, unsigned class, void *block) {
  struct magazine *magazine = &heap->magazines[class];
  if (magazine->top == magazine->end) batch_flush(heap, class);
  /* A Large block that the flush has just given back was freed twice. */
  if (UNLIKELY(!map_entry_is_live(owner_map_entry((uintptr_t)block))))
    pointer_fail("free", (uintptr_t)block);
  else if (magazine->top == magazine->end) /* a Large class that has no slots (yet) */
    batch_give_large(heap, block);
  else
    magazine_push(magazine, magazine->top, block);
}

/* Of a thread whose heap is gone (or cannot be made): straight home. */
static void free_without_heap(void *block, unsigned class) {
  if (class < SLAB_CLASS_COUNT)
    batch_free(NULL, &block, 1, &stray_counters);
  else
    large_give((uintptr_t)block, &stray_counters);
}

/* A Large block of another heap becomes ours: nothing but its map entry names the owner. */
static void adopt_large(struct heap *heap, unsigned class, void *block) {
  if (UNLIKELY(!range_block_begins_at((uintptr_t)block))) {
    pointer_fail("free", (uintptr_t)block);
    return;
  }
  owner_map_set(granule_of((uintptr_t)block), heap->owner.tag | class);
  heap->large_bytes_out += (int64_t)class_bytes(class);
  push(heap, class, block);
}

static void leave(struct heap *heap, unsigned class) {
  if (heap_is_diverted(heap)) guard_sampler_reopen(heap, class);
  heap_leave(heap);
}

static void free_into_magazine(struct heap *heap, uint32_t entry, void *block) {
  unsigned class = entry & MAP_CLASS_MASK;
  bool is_own = (entry & ~MAP_CLASS_MASK) == heap->owner.tag;
  if (UNLIKELY(magazine_ends_with(&heap->magazines[class], block))) { /* twice in a row */
    pointer_fail("free", (uintptr_t)block);
    return;
  }
  uint64_t now_ms = scavenge_caches_when_due(heap);
  heap_enter(heap);
  if (is_own || class < SLAB_CLASS_COUNT)
    push(heap, class, block);
  else
    adopt_large(heap, class, block);
  leave(heap, class);
  scavenge_rest_when_due(heap, now_ms);
}

static void free_homewards(struct heap *heap, uint32_t entry, void *block) {
  heap_enter(heap);
  bool went_beyond = starter_give(entry, block) || remote_buffer_add(heap, (uintptr_t)block);
  leave(heap, entry & MAP_CLASS_MASK);
  if (went_beyond) scavenge_when_due(heap);
}

/* Another heap's Mid block is reused by whoever freed it, and goes home when it is flushed: memory that
 * waits in its owner's queue is what makes heaps of threads that hand blocks over large.  Tiny ones go
 * home at once where a reused one would come the slow way back here again and again (heap/reuse.h), and
 * two threads' blocks in one cache line would slow both (measured: docs/decisions/0002).
 * When that turns, the free before went the other way, and may have been of the same block. */
static void free_remote_tiny(struct heap *heap, uint32_t entry, void *block) {
  unsigned class = entry & MAP_CLASS_MASK;
  struct reuse *reuse = &heap->reuse[class];
  if (reuse->turns) {
    reuse->turns = false;
    if (UNLIKELY(magazine_ends_with(&heap->magazines[class], block) ||
                 remote_buffer_had(heap, (uintptr_t)block))) {
      pointer_fail("free", (uintptr_t)block);
      return;
    }
  }
  if (reuse->lease)
    free_into_magazine(heap, entry, block);
  else
    free_homewards(heap, entry, block);
}

static void free_block(uint32_t entry, void *block) {
  struct heap *heap = heap_of_this_thread();
  unsigned class = entry & MAP_CLASS_MASK;
  if (UNLIKELY(!heap)) {
    free_without_heap(block, class);
    scavenge_when_due(heap_of_thread);
  } else if (class < TINY_CLASS_COUNT && (entry & ~MAP_CLASS_MASK) != heap->owner.tag)
    free_remote_tiny(heap, entry, block);
  else
    free_into_magazine(heap, entry, block);
}

static void free_big(void *block) {
  if (LIKELY(range_block_begins_at((uintptr_t)block)))
    big_give((uintptr_t)block, heap_counters(heap_of_this_thread()));
  else
    pointer_fail("free", (uintptr_t)block);
}

static void free_foreign(void *block) {
  const struct os_libc_malloc *libc = os_libc_malloc();
  if (!libc->free || !pointer_is_libc_block((uintptr_t)block)) {
    pointer_fail("free", (uintptr_t)block);
    return;
  }
  count(heap_counters(heap_of_thread), COUNT_foreign_frees);
  libc->free(block);
}

NOINLINE static void free_outside(void *block) {
  if (guarded_covers((uintptr_t)block))
    guarded_give((uintptr_t)block, "free");
  else if (nothing_covers((uintptr_t)block))
    nothing_give((uintptr_t)block, "free");
  else
    free_foreign(block);
}

/* All but the most frequent frees.  Apart, so that those save no registers. */
static NOINLINE void free_the_long_way(void *block, enum maker maker) {
  if (!block) return;
  if (!is_in_window((uintptr_t)block)) {
    free_outside(block);
    return;
  }
  uint32_t entry = owner_map_entry((uintptr_t)block);
  if (UNLIKELY(!map_entry_is_live(entry))) {
    pointer_fail("free", (uintptr_t)block);
    return;
  }
  if (LIKELY(!options.harden && entry != MAP_ENTRY_BIG_LIVE)) {
    free_block(entry, block);
    return;
  }
  if (options.harden)
    checked_free(heap_of_this_thread(), (uintptr_t)block, entry, maker);
  else
    free_big(block);
  scavenge_when_due(heap_of_thread);
}

/* Another heap's block that this thread may reuse: pushed as if it were its own. */
static bool push_for_reuse(struct heap *heap, unsigned class, void *block) {
  struct magazine *magazine = &heap->magazines[class];
  void **top = magazine->top;
  if (UNLIKELY(top == magazine->end || magazine_may_end_with(top, block)))
    return false; /* those of the constant heaps are full always */
  magazine_push(magazine, top, block);
  return true;
}

static bool keep_tiny(struct heap *heap, unsigned class, void *block) {
  struct reuse *reuse = &heap->reuse[class];
  if (UNLIKELY(reuse->turns)) return false;
  if (!reuse->lease) return remote_buffer_try_add(heap, (uintptr_t)block);
  if (!push_for_reuse(heap, class, block)) return false;
  reuse_spend(reuse);
  return true;
}

/* Another heap's block that goes no further than this thread's caches: most of them.  Here, and not in
 * the fast path, because only blocks that changed threads come this way.  (And an own one when its
 * magazine is full.) */
static bool keep_for_now(struct heap *heap, uint32_t entry, void *block) {
  unsigned class = entry & MAP_CLASS_MASK;
  if (class >= SLAB_CLASS_COUNT || !map_entry_is_live(entry) || heap_is_diverted(heap))
    return false;
  if (class >= TINY_CLASS_COUNT) return push_for_reuse(heap, class, block);
  return (entry & ~MAP_CLASS_MASK) != heap->owner.tag && keep_tiny(heap, class, block);
}

NOINLINE static void free_hardened(void *block, enum maker maker) {
  if (!checked_free_ready(heap_of_thread, (uintptr_t)block, maker)) free_the_long_way(block, maker);
}

NOINLINE void heap_free_slow(void *block) {
  if (UNLIKELY(options.harden)) {
    free_hardened(block, MADE_BY_MALLOC);
    return;
  }
  size_t granule = granule_of((uintptr_t)block);
  bool is_mapped = granule < load_relaxed(&window.granule_count);
  if (LIKELY(is_mapped) &&
      LIKELY(keep_for_now(heap_of_thread, load_relaxed(&window.owner_map[granule]), block)))
    return;
  free_the_long_way(block, MADE_BY_MALLOC);
}

/* Only the checked path knows what made a block. */
static void delete_slow(void *block, enum maker maker) {
  if (LIKELY(!options.harden))
    heap_free_slow(block);
  else
    free_hardened(block, maker);
}
NOINLINE void heap_delete_slow(void *block) { delete_slow(block, MADE_BY_NEW); }
NOINLINE void heap_delete_array_slow(void *block) { delete_slow(block, MADE_BY_NEW_ARRAY); }

/* ---- sized free ---------------------------------------------------------------------------------------- */

/* What a block of this size and alignment has, if it was made for just them. */
static size_t usable_bytes_for(size_t size, size_t alignment) {
  bool is_big = size > LARGE_MAX_BYTES || alignment > LARGE_MAX_BYTES;
  return is_big ? big_good_bytes(size) : class_bytes(aligned_class(size, alignment));
}

static void fail_size(uintptr_t address, size_t size, size_t usable_bytes) {
  struct block_description block =
      pointer_describe(address, owner_map_entry(address), usable_bytes);
  report_size_mismatch("free", address, size, &block);
}

/* What a Large or Big block was made for, whether a hard limit counts all of it or not. */
static size_t range_made_bytes(uintptr_t block, uint32_t entry) {
  return entry == MAP_ENTRY_BIG_LIVE ? big_usable_bytes(block)
                                     : class_bytes(entry & MAP_CLASS_MASK);
}

/* The checked path knows what was asked for.  A guarded block knows what it was made for. */
static bool fits_size(const void *block, size_t size, size_t alignment, bool is_exact,
                      size_t usable_bytes) {
  bool is_guarded = !is_in_window((uintptr_t)block);
  if (is_guarded ? is_exact : options.harden != 0) return size == usable_bytes;
  if (size > REQUEST_MAX_BYTES) return false;
  if (is_guarded) return heap_shrinks_in_place(size, usable_bytes);
  uint32_t entry = owner_map_entry((uintptr_t)block);
  if ((entry & MAP_CLASS_MASK) >= SLAB_CLASS_COUNT)
    usable_bytes = range_made_bytes((uintptr_t)block, entry);
  return usable_bytes == usable_bytes_for(size, alignment) ||
         (!is_exact && heap_shrinks_in_place(size, usable_bytes));
}

/* After a word about a size that the block cannot have, it is freed all the same. */
static void free_checked(void *block, size_t size, size_t alignment, bool is_exact,
                         enum maker maker) {
  size_t usable_bytes;
  enum block_kind kind = block ? heap_ask(block, "free", &usable_bytes) : BLOCK_NONE;
  if (kind == BLOCK_NONE) return;
  if (UNLIKELY(kind == BLOCK_OWN && !fits_size(block, size, alignment, is_exact, usable_bytes)))
    fail_size((uintptr_t)block, size, usable_bytes);
  if (UNLIKELY(options.harden))
    free_the_long_way(block, maker);
  else
    heap_free(block);
}

static void delete_sized_slow(void *block, size_t size, enum maker maker) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  bool fits = !options.harden && size <= LARGE_MAX_BYTES && map_entry_is_live(entry) &&
              (entry & MAP_CLASS_MASK) == class_of_size(size);
  if (LIKELY(fits))
    heap_free(block);
  else
    free_checked(block, size, 1, true, maker);
}
NOINLINE void heap_delete_sized_slow(void *block, size_t size) {
  delete_sized_slow(block, size, MADE_BY_NEW);
}
NOINLINE void heap_delete_array_sized_slow(void *block, size_t size) {
  delete_sized_slow(block, size, MADE_BY_NEW_ARRAY);
}

void heap_free_sized_loosely(void *block, size_t size, size_t alignment, enum maker maker) {
  free_checked(block, size, alignment, false, maker);
}

/* ---- questions ------------------------------------------------------------------------------------------ */

static enum block_kind no_block(const char *verb, uintptr_t address) {
  pointer_fail(verb, address);
  return BLOCK_NONE;
}

NOINLINE static enum block_kind ask_outside(uintptr_t address, const char *verb,
                                            size_t *usable_bytes) {
  if (guarded_covers(address))
    return guarded_ask(address, verb, usable_bytes) ? BLOCK_OWN : BLOCK_NONE;
  if (nothing_covers(address)) {
    *usable_bytes = 0;
    return nothing_ask(address, verb) ? BLOCK_OWN : BLOCK_NONE;
  }
  bool is_libc_block = os_libc_malloc()->free && pointer_is_libc_block(address);
  return is_libc_block ? BLOCK_FOREIGN : no_block(verb, address);
}

/* By this thread, and no other of its class since. */
static bool was_just_freed(uint32_t entry, const void *block) {
  const struct heap *heap = heap_of_thread;
  uint32_t class = entry ^ heap_tag(heap);
  return class < CLASS_COUNT && magazine_ends_with(&heap->magazines[class], block);
}

/* The program may have what a hard limit counts. */
static size_t range_usable_bytes(uintptr_t block, uint32_t entry) {
  const struct range_info *info = range_info(granule_of(block));
  if (UNLIKELY(info->uncounted))
    return ((size_t)info->granules << GRANULE_SHIFT) - range_uncounted_bytes(info) -
           info->colour_bytes;
  return range_made_bytes(block, entry);
}

enum block_kind heap_ask(const void *block, const char *verb, size_t *usable_bytes) {
  uintptr_t address = (uintptr_t)block;
  if (!is_in_window(address)) return ask_outside(address, verb, usable_bytes);
  uint32_t entry = owner_map_entry(address);
  unsigned class = entry & MAP_CLASS_MASK;
  if (UNLIKELY(!map_entry_is_live(entry))) return no_block(verb, address);
  if (UNLIKELY(options.harden)) return checked_ask(address, entry, verb, usable_bytes);
  if (UNLIKELY(was_just_freed(entry, block))) return no_block(verb, address);
  if (class < SLAB_CLASS_COUNT) {
    *usable_bytes = class_block_bytes[class];
    return slab_index_of(slab_of_block(address), address, verb) == NO_BLOCK ? BLOCK_NONE
                                                                            : BLOCK_OWN;
  }
  if (UNLIKELY(!range_block_begins_at(address))) return no_block(verb, address);
  *usable_bytes = range_usable_bytes(address, entry);
  return BLOCK_OWN;
}

static bool resize_checked(struct heap *heap, void *block, size_t size) {
  if (heap) heap_enter(heap);
  bool is_resized = checked_resize((uintptr_t)block, size);
  if (heap) heap_leave(heap);
  return is_resized;
}

bool heap_resize(void *block, size_t size) {
  if (!is_in_window((uintptr_t)block)) return false; /* a guarded one */
  struct heap *heap = heap_of_this_thread();
  if (UNLIKELY(options.harden)) return resize_checked(heap, block, size);
  int64_t large_bytes;
  if (!resize_in_place((uintptr_t)block, size, &large_bytes, heap_counters(heap))) return false;
  if (heap) heap->large_bytes_out += large_bytes;
  return true;
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
  if (UNLIKELY(!block)) *target = NULL;
  return moved;
}

/* By the maps alone: another thread may be freeing the block, and its slab changing hands. */
bool heap_owns(const void *address) {
  size_t granule = granule_of((uintptr_t)address);
  if (granule >= load_relaxed(&window.granule_count))
    return guarded_covers((uintptr_t)address) || nothing_covers((uintptr_t)address);
  uintptr_t metadata = (uintptr_t)chunk_metadata(granule / GRANULES_PER_CHUNK);
  if (metadata & CHUNK_IS_RANGES) return range_covering(granule) != NO_GRANULE;
  return map_entry_is_live(owner_map_entry((uintptr_t)address));
}
