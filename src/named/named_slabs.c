#include "named/named_slabs.h"

#include "cache/supply.h"
#include "pool/purge.h"
#include "slab/pending.h"
#include "slab/slab.h"

/* ---- malloc ------------------------------------------------------------------------------------------------------- */

/* NULL without memory.  What is new to the heap is noted before a block of it is anybody's. */
LONG_LIVED struct slab *named_slabs_find(struct hak_heap *heap, unsigned class) {
  struct bin *bin = &heap->owner.bins[class];
  struct supply supply = {.owner = &heap->owner, .class = class, .users = FOR_NAMED, .wanted = 1};
  uint32_t slabs_before = load_relaxed(&bin->slab_count);
  struct slab *slab = supply_climb(&supply);
  if (!slab || load_relaxed(&bin->slab_count) == slabs_before) return slab;
  if (LIKELY(slab_set_add(&heap->slabs, &heap->owner, slab))) return slab;
  slab_try_release(slab, &heap->owner);
  return NULL;
}

LONG_LIVED void named_slabs_put_back(struct hak_heap *heap, void *block) {
  struct slab *slab = slab_of_block((uintptr_t)block);
  size_t index = slab_block_index(&slab_shapes[slab->class], (uintptr_t)block - slab->base);
  slab_put_one(slab, slab->class, (unsigned)index, &heap->owner);
}

/* ---- free --------------------------------------------------------------------------------------------------------- */

static bool is_in_remote(const struct slab *slab, unsigned index) {
  return load_relaxed(&slab->remote[index / 64]) >> index % 64 & 1;
}

/* Under the latch: no block of the heap is in anybody's cache, so a second free is found at once.  True at the first
 * free block of another slab than the current one, and at its last. */
static bool give(struct hak_heap *heap, struct slab *slab, unsigned index) {
  /* Another thread's free of the same block may have been the one that let the slab go. */
  bool is_twice = load_relaxed(&slab->owner) != &heap->owner || is_in_remote(slab, index) ||
                  slab->local[index / 64] >> index % 64 & 1;
  if (UNLIKELY(is_twice)) {
    slab_fail_double_free(slab, index / 64, UINT64_C(1) << index % 64);
    return false;
  }
  bool is_edge = slab != heap->owner.bins[slab->class].current &&
                 (!slab->free_local || slab->free_local + 1 == slab->capacity);
  slab_put_one(slab, slab->class, index, &heap->owner);
  add_single_writer(&heap->freed_blocks, 1);
  return is_edge;
}

LONG_LIVED bool named_slabs_give(struct hak_heap *heap, void *block, struct counters *counters) {
  struct slab *slab = slab_of_block((uintptr_t)block);
  unsigned index;
  if (UNLIKELY(!slab_has_block(slab, (uintptr_t)block, &index))) {
    slab_fail_pointer(slab, (uintptr_t)block, "free");
    return false;
  }
  bool is_edge = true;
  if (LIKELY(named_is(heap, NAMED_IN_USE) && latch_try(&heap->owner))) {
    owner_note_work(&heap->owner);
    is_edge = give(heap, slab, index);
    named_leave(heap);
  } else if (UNLIKELY(is_in_remote(slab, index))) {
    slab_fail_double_free(slab, index / 64, UINT64_C(1) << index % 64);
    return false;
  } else {
    slab_free_remote(slab, index / 64, UINT64_C(1) << index % 64, counters);
    fetch_add_relaxed(&heap->freed_remotely, 1);
  }
  if (is_edge) purge_want();
  return is_edge;
}

/* ---- all at once -------------------------------------------------------------------------------------------------- */

/* 0 when all of the slab's are. */
static uintptr_t bury_blocks(const struct hak_heap *heap, const struct slab *slab,
                             named_bury *bury) {
  for (unsigned word = 0; word < slab->word_count; word++)
    for (uint64_t live = ~slab->local[word] & slab_word_bits(slab, word); live; live &= live - 1) {
      uintptr_t block = slab->base + ((size_t)word * 64 + lowest_bit(live)) * slab->block_bytes;
      if (!bury(block, heap->owner.tag | slab->class)) return block;
    }
  return 0;
}

/* Its remote frees are collected, and it is in no queue. */
static void give_slab(struct hak_heap *heap, struct slab *slab) {
  unsigned live = slab->capacity - slab->free_local;
  if (slab->is_listed) slab_unlist(slab, &heap->owner);
  for (unsigned word = 0; word < slab->word_count; word++)
    slab->local[word] = slab_word_bits(slab, word);
  slab->first_word = 0;
  slab_note_freed(slab, &heap->owner, live, slab->block_bytes);
  add_single_writer(&heap->freed_blocks, live);
  /* False when a free that the program ought to have waited for is on its way: then whoever sweeps the heap takes it. */
  if (!slab_try_release(slab, &heap->owner) && slab != heap->owner.bins[slab->class].current)
    slab_list(slab, &heap->owner);
}

LONG_LIVED uintptr_t named_slabs_give_all(struct hak_heap *heap, named_bury *bury) {
  named_collect(heap);
  size_t next = 0;
  for (struct slab *slab; (slab = slab_set_next(&heap->slabs, &heap->owner, &next));) {
    slab_collect(slab, &heap->owner);
    if (load_relaxed(&slab->owner) != &heap->owner) continue;
    uintptr_t refused = UNLIKELY(bury != NULL) ? bury_blocks(heap, slab, bury) : 0;
    if (UNLIKELY(refused)) return refused;
    give_slab(heap, slab);
  }
  uint32_t kept = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    kept += load_relaxed(&heap->owner.bins[class].slab_count);
  if (LIKELY(!kept)) slab_set_clear(&heap->slabs);
  return 0;
}
