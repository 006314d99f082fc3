#include "heap/sampling.h"

#include "cache/divert.h"
#include "cache/flush.h"
#include "checked/checked.h"
#include "config/options.h"
#include "heap/kinds.h"
#include "heap/tracing.h"
#include "named/named_samples.h"
#include "named/named_slabs.h"
#include "profile/control.h"
#include "profile/recording.h"
#include "profile/samples.h"
#include "ranges/big.h"
#include "ranges/large.h"
#include "reclaim/reclaim.h"

/* ---- the control record's requests ----------------------------------------------------------- */

static void purge(struct heap *heap) {
  if (LIKELY(!profile_wants_purge())) return;
  if (!reclaim_is_ours()) {
    heap_divert(heap, HEAP_POKE); /* a guest leaves it to its parent's thread */
    return;
  }
  uint32_t request = profile_begin_purge();
  if (!request) return; /* another thread does it */
  reclaim(heap, RECLAIM_ALL);
  profile_end_purge(request);
}

NOINLINE void sampling_look(struct heap *heap) {
  divert_look(heap);
  purge(heap);
}

void sampling_attend(struct heap *heap, unsigned class) {
  /* seq: before the control record is read, or a poke that comes with a change in between would be
   * undone unseen. */
  exchange_seq(&heap->tag, heap_resting_tag(heap));
  if (sampler_is_wanted(&heap->sampler)) divert_look(heap);
  purge(heap);
  if (!options.guard) return;
  heap_enter(heap);
  if (class < SLAB_CLASS_COUNT) batch_flush_whole(heap, class);
  heap_leave(heap);
  heap->guard_sampler.countdown = 1;
}

bool sampling_switch(bool is_on, uint64_t period_bytes) {
  if (!profile_ask(is_on, period_bytes)) return false;
  divert_all();
  if (heap_is_real(heap_of_thread)) sampling_look(heap_of_thread);
  return true;
}

/* Blocks of small classes are counted in lots of LOT_BYTES. */
enum { LOT_BYTES = 128 << 10 };
_Static_assert(LOT_BYTES / 8 <= UINT16_MAX,
               "a magazine's passes count a lot of the smallest blocks");

/* ---- malloc ---------------------------------------------------------------------------------- */

/* The block's bytes, and its class, as the census counts them: in hardened mode and in named heaps
 * what fits no slab is Big. */
static unsigned class_of(const struct heap *heap, const struct allocation *allocation,
                         uint64_t *block_bytes) {
  size_t size = allocation->size, alignment = allocation->alignment;
  bool is_hardened = owner_is_hardened(&heap->owner), is_named = allocation->named;
  unsigned class = UNLIKELY(is_hardened) ? checked_class_of(size, alignment)
                   : UNLIKELY(is_named)  ? slab_class_for(size, alignment)
                                         : class_of_aligned(size, alignment);
  bool is_big = is_hardened || is_named ? class == SLAB_CLASS_COUNT : large_is_big(size, alignment);
  *block_bytes = is_big ? big_good_bytes(size) : class_bytes(class);
  return is_big ? MAP_CLASS_BIG : class;
}

/* The class of a block that malloc pops from a magazine; SLAB_CLASS_COUNT of any other. */
INLINE unsigned small_class_of(const struct heap *heap, const struct allocation *allocation) {
  if (UNLIKELY(owner_is_hardened(&heap->owner)) || allocation->size > MID_MAX_BYTES)
    return SLAB_CLASS_COUNT;
  return slab_class_of(allocation->size, allocation->alignment);
}

/* The class whose lot has the request; SLAB_CLASS_COUNT for none: no magazine serves a named heap's
 * block, while such a heap is in use, or blocks are moved, the thread's own must not serve malloc,
 * and a recorded malloc must not pass unseen. */
INLINE unsigned lot_of(const struct heap *heap, const struct allocation *allocation) {
  if (heap_is_armed_by(heap, ARMED_BY_ANY & ~ARMED_BY_PROFILE) || allocation->named)
    return SLAB_CLASS_COUNT;
  return small_class_of(heap, allocation);
}

/* Counts a lot, or one request, and returns whether the request is a sample. A lot's last block is
 * counted when it is handed out, if it is a sample. */
static bool counts(struct heap *heap, const struct allocation *allocation, struct magazine *lot) {
  uint64_t block_bytes;
  unsigned class = class_of(heap, allocation, &block_bytes);
  unsigned most = lot ? LOT_BYTES / (unsigned)block_bytes : 1;
  struct sampler_lot counted = sampler_count(&heap->sampler, block_bytes, most);
  bool is_later = counted.has_sample && counted.blocks > 1;
  if (lot) {
    lot->is_sample_due = is_later;
    lot->passes = (uint16_t)(counted.blocks - is_later - 1);
  }
  if (class < CLASS_COUNT) {
    class_figures_add(heap, class, profiled_blocks, counted.blocks - is_later);
  } else {
    count(&heap->owner.counters, COUNT_profiled_big_blocks);
    count_add(&heap->owner.counters, COUNT_profiled_big_bytes, allocation->size);
  }
  return counted.has_sample && !is_later;
}

/* The thread reads the control record before it draws: whether it does must not depend on what it
 * draws (profile/sampler.h). */
NOINLINE static bool is_sample(struct heap *heap, const struct allocation *allocation,
                               unsigned class) {
  if (class < SLAB_CLASS_COUNT && heap->magazines[class].is_sample_due) {
    heap->magazines[class].is_sample_due = false;
    class_figures_add(heap, class, profiled_blocks, 1);
    return true;
  }
  if (!heap->sampler.unlooked) {
    sampling_look(heap);
    class = lot_of(heap, allocation); /* none, if a trace has begun */
  }
  if (UNLIKELY(!heap->sampler.countdown)) return false;
  class_figures_need(heap);
  bool has_lot = class < SLAB_CLASS_COUNT && class_figures(heap, 0);
  return counts(heap, allocation, has_lot ? &heap->magazines[class] : NULL);
}

int sampling_count(struct heap *heap, const struct allocation *allocation) {
  if (sampler_is_wanted(&heap->sampler)) sampling_look(heap);
  if (UNLIKELY(!heap->sampler.countdown)) return NOT_SAMPLED;
  unsigned class = lot_of(heap, allocation);
  if (class < SLAB_CLASS_COUNT && heap->magazines[class].passes) {
    heap->magazines[class].passes--; /* there was no block */
    return NOT_SAMPLED;
  }
  if (!is_sample(heap, allocation, class)) return NOT_SAMPLED;
  return samples_throw_coins(&heap->sampler.random);
}

void *sampling_take(struct heap *heap, const struct allocation *allocation) {
  unsigned class = small_class_of(heap, allocation);
  if (class == SLAB_CLASS_COUNT) return NULL;
  heap_enter(heap);
  void *block = named_samples_take(class);
  heap_leave(heap);
  return block;
}

/* The key of a sample when it is freed: realloc may move a Big block in its first page. */
static uintptr_t address_of(const void *block) {
  uintptr_t address = (uintptr_t)block;
  uint32_t entry = owner_map_entry(address);
  bool is_in_slab = map_slab_class(entry) < SLAB_CLASS_COUNT;
  return is_in_slab ? address : round_down(address, GRANULE_BYTES);
}

/* Whether a free finds the sample: only that of these kinds looks. A slab has one when there was no
 * memory for the samples' heap. */
static bool is_found_again(const void *block) {
  switch (kind_of_entry(owner_map_entry((uintptr_t)block))) {
    case KIND_none:
    case KIND_slab: return false;
    case KIND_large:
    case KIND_big:
    case KIND_named_range: range_info(granule_of((uintptr_t)block))->is_sampled = true; return true;
    default: return true;
  }
}

void sampling_note(struct heap *heap, const struct allocation *allocation, void *block, int coins) {
  struct sampler *sampler = &heap->sampler;
  struct recorded_block recorded = {
      .block = block, .requested_bytes = allocation->size, .coins = coins};
  recorded.class = class_of(heap, allocation, &recorded.block_bytes);
  recorded.address = address_of(block);
  if (coins == SAMPLE_THINNED_OUT || is_found_again(block))
    recording_add(sampler, &recorded);
  else
    recording_lose();
  sampling_look(heap);
}

/* ---- free ------------------------------------------------------------------------------------ */

void sampling_note_freed_range(uintptr_t block) {
  struct range_info *info = range_info(granule_of(block));
  if (LIKELY(!info->is_sampled)) return;
  info->is_sampled = false;
  recording_remove(round_down(block, GRANULE_BYTES), (void *)block);
}

void *sampling_note_kept(void *block, size_t size) {
  tracing_resize(heap_of_thread, block, size);
  recording_resize(address_of(block), size);
  return block;
}

void sampling_note_resized(struct heap *heap, void *block, size_t size) {
  sampling_note_freed_range((uintptr_t)block);
  if (!heap) return;
  tracing_resize(heap, block, size);
  struct allocation allocation = {.size = size, .alignment = 1, .named = named_of_block(block)};
  int coins = sampling_coins(heap, &allocation);
  if (coins != NOT_SAMPLED) sampling_note(heap, &allocation, block, coins);
}
