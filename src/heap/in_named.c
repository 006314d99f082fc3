#include "heap/in_named.h"

#include "checked/checked.h"
#include "checked/checked_range.h"
#include "heap/sampling.h"
#include "heap/thread.h"
#include "named/named_ranges.h"
#include "named/named_slabs.h"
#include "profile/profile.h"
#include "profile/recording.h"
#include "purge/purge.h"
#include "ranges/big.h"
#include "ranges/large.h"
#include "reclaim/due.h"
#include "reclaim/reclaim.h"

/* ---- malloc ---------------------------------------------------------------------------------- */

/* A block that another thread checks from beside at this moment goes back to its slab only after
 * the search, so that it is not offered twice. No program has more such threads. */
static void *take_checked(struct hak_heap *named, unsigned class,
                          const struct allocation *allocation, bool *went_beyond) {
  enum { REFUSED_MOST = 16 };
  void *refused[REFUSED_MOST], *block = NULL;
  unsigned count = 0;
  while (count < REFUSED_MOST && (block = named_slabs_take(named, class, went_beyond)) &&
         !checked_begin((uintptr_t)block, class, allocation->size, allocation->maker)) {
    refused[count++] = block;
    block = NULL;
  }
  while (UNLIKELY(count)) named_slabs_put_back(named, refused[--count]);
  return block;
}

static void *take_block(struct hak_heap *named, unsigned class, const struct allocation *allocation,
                        bool *went_beyond) {
  return UNLIKELY(owner_is_hardened(&named->owner))
             ? take_checked(named, class, allocation, went_beyond)
             : named_slabs_take(named, class, went_beyond);
}

/* Enters a lane if the heap has some, unless the whole heap must be checked. */
static struct hak_heap *enter_part(struct hak_heap *named) {
  bool is_whole = owner_is_hardened(&named->owner) || load_relaxed(&named->limit_bytes);
  if (!is_whole) return named_enter_any(named);
  named_enter(named);
  return named;
}

static void *refuse(struct hak_heap *named, struct allocation *allocation) {
  fetch_add_relaxed(&named->refusals, 1);
  allocation->is_final = true;
  return NULL;
}

static void *take_of_slab(struct hak_heap *named, unsigned class, struct allocation *allocation) {
  bool went_beyond = false;
  struct hak_heap *part = enter_part(named);
  bool is_allowed = part != named || named_allows(named, class_bytes(class));
  void *block = is_allowed ? take_block(part, class, allocation, &went_beyond) : NULL;
  if (LIKELY(block)) named_note_taking(part, 0);
  if (went_beyond) named_note_total(named, part);
  named_leave(part);
  allocation->was_quick = !went_beyond;
  return is_allowed ? block : refuse(named, allocation);
}

/* The limit is checked before, as the request may be absurd, and again when the range's size is
 * known. */
static bool is_allowed_at_all(const struct hak_heap *named, size_t bytes) {
  uint64_t limit = load_relaxed(&named->limit_bytes);
  return !limit || big_good_bytes(bytes) <= limit;
}

/* Frees a range that is in no heap; `entry` is that of the heap that it was in, if any. */
static void free_range(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker,
                       const char *verb) {
  if (UNLIKELY(map_entry_is_closed(entry))) {
    checked_free_range(heap, block, entry, maker, verb);
    return;
  }
  sampling_note_freed_range(block);
  large_give(block, heap_counters(heap));
}

static uintptr_t make_range(struct heap *heap, struct allocation *allocation) {
  if (UNLIKELY(owner_is_hardened(&allocation->named->owner)))
    return (uintptr_t)checked_range_allocate(heap, allocation);
  struct large_request request = {.bytes = allocation->size,
                                  .alignment_bytes = allocation->alignment,
                                  .site = allocation->site,
                                  .home = heap->owner.number,
                                  .is_plain_big = true};
  uintptr_t range = large_take(&request, &heap->owner.counters);
  allocation->is_zero = request.is_zero;
  return range;
}

static void *take_range(struct heap *heap, struct hak_heap *named, struct allocation *allocation) {
  if (!is_allowed_at_all(named, allocation->size)) return refuse(named, allocation);
  uintptr_t range = make_range(heap, allocation);
  if (!range) return NULL;
  uint64_t bytes = size_of_granules(range_info(granule_of(range))->granules);
  named_enter(named);
  bool is_allowed = named_allows(named, bytes);
  bool is_added = is_allowed && named_ranges_add(named, range); /* else it is freed */
  if (is_added) named_note_taking(named, 0);
  named_leave(named);
  if (is_added) return (void *)range; /* NOLINT(performance-no-int-to-ptr) */
  if (is_allowed) return NULL;
  free_range(heap, range, MAP_ENTRY_BIG_LIVE, allocation->maker, "free");
  return refuse(named, allocation);
}

/* A refusal is counted once, and without the latch; an in-place realloc is refused uncounted: it
 * then comes here. */
void *heap_named_allocate(struct heap *heap, struct allocation *allocation) {
  struct hak_heap *named = allocation->named = named_resolve(allocation->named);
  if (UNLIKELY(!named)) {
    allocation->is_final = true;
    return NULL;
  }
  size_t size = allocation->size, alignment = allocation->alignment;
  unsigned class = UNLIKELY(owner_is_hardened(&named->owner)) ? checked_class_of(size, alignment)
                                                              : slab_class_for(size, alignment);
  return class < SLAB_CLASS_COUNT ? take_of_slab(named, class, allocation)
                                  : take_range(heap, named, allocation);
}

INLINE void *take_quickly(struct hak_heap *named, unsigned class) {
  struct slab *slab = named->owner.bins[class].current;
  if (UNLIKELY(!slab || !slab->free_local)) return NULL;
  owner_note_work(&named->owner);
  named_note_taking(named, slab_shapes[class].block_bytes);
  return slab_take_first(slab, &named->owner);
}

NOINLINE static void *take_shared(struct hak_heap *named, unsigned class) {
  os_settle_copy();
  struct hak_heap *part = named_enter_part(named);
  void *block = take_quickly(part, class);
  named_leave_quickly(part);
  return block;
}

/* Without limit, profile, trace or hardened mode: nearly always. Makes no heap for the thread. */
void *heap_named_take(struct hak_heap *named, unsigned class) {
  if (UNLIKELY(class >= SLAB_CLASS_COUNT || !named || owner_is_hardened(&named->owner) ||
               heap_may_be_armed_by(heap_of_thread, ARMED_BY_PROFILE | ARMED_BY_TRACE) ||
               !named_is(named, NAMED_IN_USE) || load_relaxed(&named->limit_bytes)))
    return NULL;
  return UNLIKELY(os_is_multi_threaded()) ? take_shared(named, class) : take_quickly(named, class);
}

/* ---- free ------------------------------------------------------------------------------------ */

void heap_named_free_range(void *block, uint32_t entry, enum maker maker) {
  os_settle_copy();
  if (!named_ranges_remove(named_of_entry(entry), (uintptr_t)block)) return;
  free_range(heap_of_this_thread(), (uintptr_t)block, entry, maker, "free");
  reclaim_when_due(heap_of_thread);
}

INLINE void give(void *block, uint32_t entry) {
  struct hak_heap *named = named_of_live_entry(entry);
  if (UNLIKELY(named_slabs_give(named, map_slab_class(entry), block)))
    reclaim_when_due(heap_of_thread);
}

NOINLINE static void give_sample(void *block, uint32_t entry) {
  recording_remove((uintptr_t)block, block);
  give(block, entry);
}

/* Makes no heap for the thread. */
void heap_named_free_slab(void *block, uint32_t entry, enum maker maker) {
  (void)maker;
  if (UNLIKELY(load_relaxed(&profile_state.live_samples)))
    give_sample(block, entry);
  else
    give(block, entry);
}

void heap_named_free_hardened(void *block, uint32_t entry, enum maker maker) {
  os_settle_copy();
  if (checked_end(heap_of_this_thread(), (uintptr_t)block, entry, maker, "free"))
    give(block, entry);
}

static uintptr_t remove_any_range(struct hak_heap *named) {
  named_enter(named);
  uintptr_t block = named_ranges_remove_any(named);
  named_leave(named);
  return block;
}

/* Removes the block's sample. */
static bool bury_sample(uintptr_t block, uint32_t entry) {
  (void)entry;
  recording_remove(block, (void *)block);
  return true;
}

static uintptr_t give_slabs(struct hak_heap *named) {
  bool has_samples = load_relaxed(&profile_state.live_samples);
  named_bury *bury = UNLIKELY(owner_is_hardened(&named->owner)) ? checked_end_silently : NULL;
  named_enter(named);
  uintptr_t refused = named_slabs_give_all(named, !bury && has_samples ? bury_sample : bury);
  named_leave(named);
  return refused;
}

/* A write past a block is reported without the latch, with the call stack: the report may wait for
 * another thread. */
static void free_slabs(struct hak_heap *named, const char *verb) {
  struct heap *heap = UNLIKELY(owner_is_hardened(&named->owner)) ? heap_of_this_thread() : NULL;
  uintptr_t written;
  do {
    if (heap) heap_enter(heap);
    written = give_slabs(named);
    if (heap) heap_leave(heap);
    if (UNLIKELY(written)) /* ended regardless of its maker */
      checked_end(heap, written, owner_map_entry(written), checked_maker(written), verb);
  } while (UNLIKELY(written));
}

void heap_named_free_all(struct hak_heap *named, const char *verb) {
  const uint32_t entry = named_range_entry(named);
  struct hak_heap *part;
  for (unsigned at = 0; (part = named_next_part(named, &at));) free_slabs(part, verb);
  for (uintptr_t block; (block = remove_any_range(named));)
    free_range(heap_of_this_thread(), block, entry,
               UNLIKELY(map_entry_is_closed(entry)) ? checked_maker(block) : MADE_BY_MALLOC, verb);
  purge_want();
  reclaim_when_due(heap_of_thread);
}
