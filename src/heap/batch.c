#include "heap/batch.h"

#include "guard/pointer.h"
#include "heap/capacity.h"
#include "heap/class_figures.h"
#include "heap/nursery.h"
#include "heap/outbox.h"
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
  if (slab && slab->free_local)
    count(counters, COUNT_refill_current);
  else
    slab = gate_pass(&heap->owner, class);
  if (slab)
    note_batch(heap, class, slab_take(slab, &heap->owner, magazine->top, batch_size(magazine)));
  leave(heap);
  return slab != NULL;
}

/* ---- flush -------------------------------------------------------------------------------------------- */

/* A run: blocks of one bitmap word of one slab, collected before the word is touched once. */
struct run {
  struct slab *slab;
  unsigned word;
  uint64_t bits;
};

static void put_run(const struct run *run, struct owner *owner, struct counters *counters) {
  if (!run->bits) return;
  /* relaxed: it can change to or from `owner` only under the latch that we hold. */
  if (load_relaxed(&run->slab->owner) == owner)
    slab_put(run->slab, owner, run->word, run->bits);
  else
    slab_free_remote(run->slab, run->word, run->bits, counters);
}

static void add_to_run(struct run *run, struct slab *slab, uintptr_t block, struct owner *owner,
                       struct counters *counters) {
  unsigned index = slab_index_of(slab, block, "free");
  uint64_t bit = UINT64_C(1) << index % 64;
  bool continues = slab == run->slab && index / 64 == run->word && !(run->bits & bit);
  if (!continues) {
    put_run(run, owner, counters);
    *run = (struct run){.slab = slab, .word = index / 64};
  }
  run->bits |= bit;
}

static bool is_in_slab(const struct slab *slab, uintptr_t block) {
  return slab && block - slab->base < (size_t)slab->slot_count * GRANULE_BYTES;
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
    PREFETCH(&slab->local[slab_block_index(slab, block - slab->base) / 64]);
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
  struct run run = {0};
  struct slab *slab = NULL;
  void **end = blocks + block_count;
  while (blocks != end) {
    bool is_group = end - blocks >= GROUP_BLOCKS;
    void **group_end = is_group ? blocks + GROUP_BLOCKS : end;
    if (is_group && are_scattered(blocks)) prefetch_group(blocks);
    for (; blocks != group_end; blocks++) {
      uintptr_t block = (uintptr_t)*blocks;
      if (!is_in_slab(slab, block)) slab = slab_of_block(block);
      add_to_run(&run, slab, block, owner, counters);
    }
  }
  put_run(&run, owner, counters);
}

/* What a magazine took on trust is looked at before it goes. */
void batch_give_large(struct heap *heap, void *block) {
  uintptr_t address = (uintptr_t)block;
  uint32_t entry = owner_map_entry(address);
  if (!map_entry_is_live(entry) || !range_block_begins_at(address)) pointer_fail("free", address);
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
  for (unsigned index = 0; index < rest; index++)
    magazine->base[index] = magazine->base[block_count + index];
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
}
