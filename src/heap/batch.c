#include "heap/batch.h"

#include <string.h>

#include "guard/pointer.h"
#include "heap/capacity.h"
#include "heap/class_figures.h"
#include "heap/nursery.h"
#include "heap/outbox.h"
#include "heap/quarantine.h"
#include "heap/relief.h"
#include "heap/reuse.h"
#include "slab/gate.h"
#include "slab/slab.h"
#include "tier/large.h"

/* ---- refill ----------------------------------------------------------------------------------------- */

static void enter(struct heap *heap) {
  latch_take(&heap->owner);
  owner_note_work(&heap->owner);
}

static void leave(struct heap *heap) { latch_give(&heap->owner); }

/* Half the capacity: the other half is room for frees. */
static unsigned batch_size(const struct magazine *magazine) {
  unsigned capacity = magazine_capacity(magazine);
  return capacity < 2 ? 1 : capacity / 2;
}

static void note_batch(struct heap *heap, unsigned class, unsigned taken) {
  heap->magazines[class].top += taken;
  reuse_watch(heap, class);
  class_figures_refilled(heap, class, taken);
  count(&heap->owner.counters, COUNT_refills);
  count_add(&heap->owner.counters, COUNT_refilled_blocks, taken);
}

/* The system is asked last, when nothing that rests in the thread's own caches helps either. */
static struct slab *find_slab(struct heap *heap, unsigned class) {
  if (relief_is_possible(heap)) {
    struct slab *slab = gate_pass_within_pool(&heap->owner, class);
    if (LIKELY(slab)) return slab;
    leave(heap);
    relief_give(heap);
    enter(heap);
  }
  return gate_pass(&heap->owner, class);
}

bool batch_refill(struct heap *heap, unsigned class) {
  struct counters *counters = &heap->owner.counters;
  struct magazine *magazine = &heap->magazines[class];
  unsigned shared = nursery_take(heap, class, magazine->top, magazine_capacity(magazine));
  if (UNLIKELY(shared)) {
    count(counters, COUNT_refill_nursery);
    note_batch(heap, class, shared);
    return true;
  }
  class_figures_need(heap);
  enter(heap);
  reuse_judge(heap, class);
  capacity_note_refill(heap, class);
  struct slab *slab = heap->owner.bins[class].current;
  if (slab && slab_reusable(slab))
    count(counters, COUNT_refill_current);
  else
    slab = find_slab(heap, class);
  if (slab) {
    unsigned wanted = slab_batch(slab, batch_size(magazine));
    note_batch(heap, class, slab_take(slab, &heap->owner, magazine->top, wanted));
  }
  leave(heap);
  return slab != NULL;
}

/* ---- flush -------------------------------------------------------------------------------------------- */

/* Blocks of one slab of another heap: a run is those of one bitmap word, whose frees are one atomic OR. */
static unsigned give_remote(struct slab *slab, void *const *blocks, unsigned block_count,
                            struct counters *counters) {
  unsigned given = 0, word = 0, index;
  uint64_t run = 0;
  for (; given < block_count && slab_has_block(slab, (uintptr_t)blocks[given], &index); given++) {
    uint64_t bit = UINT64_C(1) << index % 64;
    if (run && (index / 64 != word || run & bit)) {
      slab_free_remote(slab, word, run, counters);
      run = 0;
    }
    word = index / 64;
    run |= bit;
  }
  if (run) slab_free_remote(slab, word, run, counters);
  return given;
}

/* Gives back the first blocks, as many as are neighbours in one slab. */
static unsigned give_to_slab(struct owner *owner, void *const *blocks, unsigned block_count,
                             struct counters *counters) {
  struct slab *slab = slab_of_block((uintptr_t)*blocks);
  /* relaxed: it can change to or from `owner` only under the latch that we hold. */
  bool is_own = load_relaxed(&slab->owner) == owner;
  unsigned given = is_own ? slab_put(slab, owner, blocks, block_count)
                          : give_remote(slab, blocks, block_count, counters);
  if (LIKELY(given)) return given;
  slab_fail_misaligned(slab, (uintptr_t)*blocks, "free");
  return 1; /* left alone */
}

/* Blocks whose records are fetched ahead, so that their cache misses overlap: with a large live set each
 * block of a batch has others. */
enum { GROUP_BLOCKS = 16 };

static void prefetch_group(void *const *blocks) {
  struct slab *slabs[GROUP_BLOCKS];
  for (unsigned index = 0; index < GROUP_BLOCKS; index++) {
    slabs[index] = slab_of_granule(granule_of((uintptr_t)blocks[index]));
    PREFETCH(slabs[index]);
  }
  for (unsigned index = 0; index < GROUP_BLOCKS; index++) {
    uintptr_t block = (uintptr_t)blocks[index];
    const struct slab *slab = slabs[index] - ((block - slabs[index]->base) >> GRANULE_SHIFT);
    PREFETCH(&slab->free_local);
    unsigned number;
    if (LIKELY(slab_has_block(slab, block, &number))) PREFETCH(&slab->local[number / 64]);
  }
}

static bool are_together(const void *one, const void *other) {
  return granule_of((uintptr_t)one) == granule_of((uintptr_t)other);
}

/* Blocks that were freed in about the order of their addresses have their records at hand. */
static bool are_scattered(void *const *blocks) {
  void *const *middle = blocks + GROUP_BLOCKS / 2, *const *last = blocks + GROUP_BLOCKS - 1;
  return !are_together(*blocks, *middle) && !are_together(*middle, *last) &&
         !are_together(*blocks, *last);
}

void batch_free(struct owner *owner, void **blocks, unsigned block_count,
                struct counters *counters) {
  void **end = blocks + block_count, **fetched = blocks;
  while (blocks != end) {
    if (blocks >= fetched && end - blocks >= GROUP_BLOCKS) {
      if (are_scattered(blocks)) prefetch_group(blocks);
      fetched = blocks + GROUP_BLOCKS;
    }
    blocks += give_to_slab(owner, blocks, (unsigned)(end - blocks), counters);
  }
}

/* What a magazine took on trust is looked at before it goes. */
void batch_give_large(struct heap *heap, void *block) {
  uintptr_t address = (uintptr_t)block;
  uint32_t entry = owner_map_entry(address);
  if (UNLIKELY(!map_entry_is_live(entry) || !range_block_begins_at(address))) {
    pointer_fail("free", address);
    return;
  }
  heap->large_bytes_out -= (int64_t)class_bytes(entry & MAP_CLASS_MASK);
  class_figures_flushed(heap, entry & MAP_CLASS_MASK, 1);
  large_give(address, &heap->owner.counters);
}

static void give_away(struct heap *heap, unsigned class, void **blocks, unsigned block_count) {
  struct counters *counters = &heap->owner.counters;
  if (!block_count) return;
  count(counters, COUNT_flushes);
  count_add(counters, COUNT_flushed_blocks, block_count);
  if (class < SLAB_CLASS_COUNT) {
    class_figures_flushed(heap, class, block_count);
    batch_free(&heap->owner, blocks, block_count, counters);
    return;
  }
  for (unsigned index = 0; index < block_count; index++) batch_give_large(heap, blocks[index]);
}

static void flush_oldest(struct heap *heap, unsigned class, unsigned block_count) {
  struct magazine *magazine = &heap->magazines[class];
  unsigned rest = magazine_count(magazine) - block_count;
  give_away(heap, class, magazine->base, block_count);
  memmove(magazine->base, magazine->base + block_count, rest * sizeof(void *));
  magazine->top = magazine->base + rest;
}

void batch_flush(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  enter(heap);
  reuse_note_flush(heap, class);
  capacity_note_flush(heap, class);
  if (magazine->top == magazine->end) flush_oldest(heap, class, (magazine_count(magazine) + 1) / 2);
  leave(heap);
}

void batch_flush_whole(struct heap *heap, unsigned class) {
  unsigned block_count = magazine_count(&heap->magazines[class]);
  if (!block_count) return;
  enter(heap);
  flush_oldest(heap, class, block_count);
  leave(heap);
}

void batch_flush_all(struct heap *heap) {
  for (unsigned class = 0; class < CLASS_COUNT; class ++) batch_flush_whole(heap, class);
  outbox_empty(heap);
  quarantine_empty(heap);
}
