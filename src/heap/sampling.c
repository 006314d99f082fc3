#include "heap/sampling.h"

#include "cache/divert.h"
#include "config/options.h"
#include "hardened/checked.h"
#include "large/big.h"
#include "large/large.h"
#include "profile/control.h"
#include "profile/recording.h"
#include "profile/sampled_slabs.h"
#include "profile/samples.h"
#include "reclaim/reclaim.h"

/* ---- what the control record asks for ------------------------------------------------------------------------- */

void sampling_purge(struct heap *heap) {
  uint32_t request = profile_begin_purge();
  if (LIKELY(!request)) return;
  reclaim(heap, RECLAIM_TRIM);
  profile_end_purge(request);
}

NOINLINE void sampling_look(struct heap *heap) {
  divert_look(heap);
  sampling_purge(heap);
}

/* ---- malloc ------------------------------------------------------------------------------------------------------ */

/* In hardened mode whatever no slab has room for is Big. */
static unsigned class_of_hardened(const struct allocation *allocation) {
  unsigned class = checked_class_of(allocation->size, allocation->alignment);
  return class == SLAB_CLASS_COUNT ? MAP_CLASS_BIG : class;
}

static unsigned class_of_plain(const struct allocation *allocation) {
  return large_is_big(allocation->size, allocation->alignment)
             ? MAP_CLASS_BIG
             : class_of_aligned(allocation->size, allocation->alignment);
}

/* What the block takes, and its class: as the census counts it. */
static unsigned class_of(const struct allocation *allocation, uint64_t *block_bytes) {
  unsigned class =
      UNLIKELY(options.harden) ? class_of_hardened(allocation) : class_of_plain(allocation);
  bool is_big = class == MAP_CLASS_BIG;
  *block_bytes = is_big ? big_good_bytes(allocation->size) : class_bytes(class);
  return class;
}

static void count_request(struct heap *heap, unsigned class, size_t size) {
  if (class < CLASS_COUNT) {
    class_figures_need(heap);
    class_figures_profiled(heap, class);
  } else {
    count(&heap->owner.counters, COUNT_profiled_big_blocks);
    count_add(&heap->owner.counters, COUNT_profiled_big_bytes, size);
  }
}

bool sampling_counts(struct heap *heap, const struct allocation *allocation) {
  struct sampler *sampler = &heap->sampler;
  uint64_t block_bytes;
  unsigned class = class_of(allocation, &block_bytes);
  count_request(heap, class, allocation->size);
  if (block_bytes < (uint64_t)sampler->countdown) {
    sampler->countdown -= (int64_t)block_bytes;
    return false;
  }
  bool is_sample = sampler_crosses(sampler, block_bytes);
  if (!is_sample) sampling_look(heap); /* a piece has ended */
  return is_sample;
}

int sampling_throw_coins(struct heap *heap) { return samples_throw_coins(&heap->sampler.random); }

void *sampling_take(struct heap *heap, const struct allocation *allocation) {
  unsigned class = class_of_aligned(allocation->size, allocation->alignment);
  if (options.harden || allocation->size > MID_MAX_BYTES || class >= SLAB_CLASS_COUNT) return NULL;
  heap_enter(heap);
  void *block = sampled_slabs_take(class, &heap->owner.counters);
  heap_leave(heap);
  return block;
}

/* What a sample is found by when it is freed: realloc may move a Big block in its first page. */
static uintptr_t address_of(const void *block) {
  uintptr_t address = (uintptr_t)block;
  bool is_in_slab = map_entry_is_sampled(owner_map_entry(address)) || options.harden;
  return is_in_slab ? address : round_down(address, GRANULE_BYTES);
}

/* A slab block that is none of a slab of samples would not be found again: there was no memory for one.  Nor would a guarded
 * one, or what malloc(0) gives in hardened mode: they lie outside, and no free of theirs asks. */
static bool is_found_again(const void *block) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  if (options.harden) return is_in_window((uintptr_t)block);
  if (map_entry_is_sampled(entry)) return true;
  if (!map_entry_is_live(entry) || (entry & MAP_CLASS_MASK) < SLAB_CLASS_COUNT) return false;
  range_info(granule_of((uintptr_t)block))->is_sampled = true;
  return true;
}

void sampling_note(struct heap *heap, const struct allocation *allocation, void *block, int coins) {
  struct sampler *sampler = &heap->sampler;
  struct recorded_block recorded = {
      .block = block, .requested_bytes = allocation->size, .coins = coins};
  recorded.class = class_of(allocation, &recorded.block_bytes);
  recorded.address = address_of(block);
  if (coins == SAMPLE_THINNED_OUT || is_found_again(block))
    recording_add(sampler, &recorded);
  else
    recording_lose(sampler);
  sampling_look(heap);
}

/* ---- free -------------------------------------------------------------------------------------------------------- */

/* The sample goes first: the block may be another one's as soon as it is free.  Of what is no block nothing is known. */
void sampling_free(struct heap *heap, void *block) {
  recording_remove((uintptr_t)block, block);
  if (heap) heap_enter(heap);
  sampled_slabs_give(block, heap_counters(heap));
  if (heap) heap_leave(heap);
}

void sampling_note_freed_range(uintptr_t block) {
  struct range_info *info = range_info(granule_of(block));
  if (LIKELY(!info->is_sampled)) return;
  info->is_sampled = false;
  recording_remove(round_down(block, GRANULE_BYTES), (void *)block);
}

void sampling_note_kept(void *block, size_t size) { recording_resize(address_of(block), size); }

void sampling_note_resized(struct heap *heap, void *block, size_t size) {
  sampling_note_freed_range((uintptr_t)block);
  if (!heap || LIKELY(!heap->sampler.countdown)) return;
  struct allocation allocation = {.size = size, .alignment = 1};
  if (sampling_counts(heap, &allocation))
    sampling_note(heap, &allocation, block, sampling_throw_coins(heap));
}
