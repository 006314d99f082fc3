#include "named/named_slabs.h"

#include "cache/heap.h"
#include "cache/supply.h"
#include "purge/purge.h"
#include "slab/adopt.h"
#include "slab/pending.h"
#include "slab/slab.h"

/* ---- malloc ---------------------------------------------------------------------------------- */

static bool has_own(const struct owner *owner, unsigned class) {
  const struct bin *bin = &owner->bins[class];
  return bin->partial || bin->taken || load_relaxed(&owner->pending[class]) ||
         (bin->current && (bin->current->free_local || slab_count_remote(bin->current)));
}

/* A lane adopts the slabs that the heap had before threads met; the heap adopting from lanes would
 * defeat hak_heap_free_all, which visits the heap first. A thread never waits for two latches. */
static void adopt_from_heap(struct hak_heap *lane, unsigned class) {
  struct owner *heap = &lane->stands_for->owner;
  if (!load_relaxed(&heap->bins[class].slab_count) || !latch_try(heap)) return;
  struct slab *slab = adopt_listed(heap, &lane->owner, class);
  latch_give(heap);
  if (slab) slab_list(slab, &lane->owner);
}

struct slab *named_slabs_find(struct hak_heap *heap, unsigned class) {
  struct supply supply = {.owner = &heap->owner, .class = class, .users = FOR_NAMED, .wanted = 1};
  if (named_is(heap, NAMED_LANE) && !has_own(&heap->owner, class)) adopt_from_heap(heap, class);
  return supply_climb(&supply);
}

void named_slabs_put_back(struct hak_heap *heap, void *block) {
  struct slab *slab = slab_of_block((uintptr_t)block);
  size_t index = slab_block_index(&slab_shapes[slab->class], (uintptr_t)block - slab->base);
  slab_put_one(slab, slab->class, (unsigned)index, &heap->owner);
}

/* ---- free ------------------------------------------------------------------------------------ */

/* Frees without the latch of the slab's part, or when the slab has changed owner since the entry
 * was read. */
NOINLINE static bool give_remote(struct hak_heap *heap, struct slab *slab, unsigned index) {
  uint64_t bit = UINT64_C(1) << index % 64;
  if (UNLIKELY(load_relaxed(&slab->remote[index / 64]) & bit))
    return slab_fail_double_free(slab, index / 64, bit);
  slab_free_remote(slab, index / 64, bit, heap_counters(heap_of_thread));
  fetch_add_relaxed(&heap->freed_remotely, 1);
  purge_want();
  return true;
}

/* The slab is not the named part's: it may be a lane's by now, or another thread's free of the same
 * block may have released it. */
NOINLINE static bool give_moved(struct hak_heap *heap, struct slab *slab, unsigned index) {
  struct owner *owner = load_relaxed(&slab->owner);
  bool is_lanes = owner && owner_is_named(owner) && named_of_owner(owner)->stands_for == heap &&
                  named_is(named_of_owner(owner), NAMED_LANE);
  return is_lanes ? give_remote(heap, slab, index)
                  : slab_fail_double_free(slab, index / 64, UINT64_C(1) << index % 64);
}

/* Called for the first free block of a slab that is not the current one, or for the last live block
 * of a slab. */
NOINLINE static bool note_edge(struct hak_heap *heap, struct slab *slab) {
  slab_place(slab, &heap->owner);
  purge_want();
  return true;
}

/* Under the latch: the heap's blocks are in no cache, so that a second free is found at once. With
 * one thread it is the whole free, and calls nothing. */
INLINE bool give(struct hak_heap *heap, struct slab *slab, unsigned class, unsigned index) {
  uint64_t bit = UINT64_C(1) << index % 64, *word = &slab->local[index / 64];
  if (UNLIKELY(load_relaxed(&slab->owner) != &heap->owner)) return give_moved(heap, slab, index);
  if (UNLIKELY((*word | load_relaxed(&slab->remote[index / 64])) & bit))
    return slab_fail_double_free(slab, index / 64, bit);
  *word |= bit;
  slab_note_freed(slab, &heap->owner, 1, slab_shapes[class].block_bytes);
  slab_note_word(slab, index / 64);
  add_single_writer(&heap->freed_blocks, 1);
  bool is_edge = slab != heap->owner.bins[class].current &&
                 (!slab->is_listed || slab->free_local == slab_shapes[class].capacity);
  return UNLIKELY(is_edge) && note_edge(heap, slab);
}

NOINLINE static bool give_shared(struct hak_heap *heap, struct slab *slab, unsigned class,
                                 unsigned index) {
  os_settle_copy();
  if (UNLIKELY(!named_serves(heap) || !word_try(&heap->owner.latch, thread_number())))
    return give_remote(heap, slab, index);
  bool is_edge = give(heap, slab, class, index);
  named_leave_quickly(heap);
  return is_edge;
}

bool named_slabs_give(struct hak_heap *heap, unsigned class, void *block) {
  bool is_alone = !os_is_multi_threaded();
  struct slab *slab = slab_of_granule(granule_of((uintptr_t)block));
  size_t index = slab_block_index(&slab_shapes[class], (uintptr_t)block % GRANULE_BYTES);
  if (UNLIKELY(slots_of_class(class) != 1)) {
    slab = slab_of_block((uintptr_t)block);
    index = slab_block_index(&slab_shapes[class], (uintptr_t)block - slab->base);
  }
  if (UNLIKELY(index >= slab_shapes[class].capacity))
    return slab_fail_pointer(slab, (uintptr_t)block, "free");
  if (!is_alone) return give_shared(heap, slab, class, (unsigned)index);
  return named_serves(heap) ? give(heap, slab, class, (unsigned)index)
                            : give_remote(heap, slab, (unsigned)index);
}

/* ---- all at once ----------------------------------------------------------------------------- */

/* The block that was refused; 0 when all of the slab's are buried. */
static uintptr_t bury_blocks(const struct hak_heap *heap, const struct slab *slab,
                             named_bury *bury) {
  for (unsigned word = 0; word < slab->word_count; word++)
    for (uint64_t live = ~slab->local[word] & slab_word_bits(slab, word); live; live &= live - 1) {
      uintptr_t block = slab->base + ((size_t)word * 64 + lowest_bit(live)) * slab->block_bytes;
      if (!bury(block, map_entry(heap->owner.tag, slab->class))) return block;
    }
  return 0;
}

/* Frees a slab whose remote frees are collected and which is in no queue. */
static void give_slab(struct hak_heap *heap, struct slab *slab) {
  unsigned live = slab->capacity - slab->free_local;
  if (slab->is_listed) slab_unlist(slab, &heap->owner);
  for (unsigned word = 0; word < slab->word_count; word++)
    slab->local[word] = slab_word_bits(slab, word);
  slab->first_word = 0;
  slab_note_freed(slab, &heap->owner, live, slab->block_bytes);
  add_single_writer(&heap->freed_blocks, live);
  /* False when a free is on its way that the program should have waited for: a later sweep of the
   * heap releases the slab. */
  if (!slab_try_release(slab, &heap->owner) && slab != heap->owner.bins[slab->class].current)
    slab_list(slab, &heap->owner);
}

uintptr_t named_slabs_give_all(struct hak_heap *heap, named_bury *bury) {
  owner_collect_all(&heap->owner);
  struct slab *next;
  for (struct slab *slab = heap->owner.owned; slab; slab = next) {
    next = slab->next_owned; /* this one may be released */
    slab_collect(slab, &heap->owner);
    if (load_relaxed(&slab->owner) != &heap->owner) continue;
    uintptr_t refused = UNLIKELY(bury != NULL) ? bury_blocks(heap, slab, bury) : 0;
    if (UNLIKELY(refused)) return refused;
    give_slab(heap, slab);
  }
  return 0;
}
