#include "heap/batch.h"

#include <string.h>

#include "guard/pointer.h"
#include "heap/capacity.h"
#include "heap/class_figures.h"
#include "heap/glance.h"
#include "heap/quarantine.h"
#include "heap/relief.h"
#include "heap/remote_buffer.h"
#include "heap/reuse.h"
#include "heap/starter.h"
#include "large/large.h"
#include "pool/purge.h"
#include "slab/slab.h"
#include "slab/supply.h"

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

/* Blocks of other heaps' slabs, before fresh pages are touched.  Mid ones only: to free them costs the same
 * whose they are, a Tiny one would take the long way at each free (docs/decisions/0002). */
static unsigned borrow(struct heap *heap, unsigned class) {
  enum { MOST = 8 };
  if (class < TINY_CLASS_COUNT) return 0;
  struct magazine *magazine = &heap->magazines[class];
  unsigned wanted = batch_size(magazine);
  return supply_borrow(&heap->owner, class, magazine->top, wanted < MOST ? wanted : MOST);
}

/* Behind those that the magazine has got already. */
static unsigned take_more(struct heap *heap, struct slab *slab, unsigned taken) {
  struct magazine *magazine = &heap->magazines[slab->class];
  unsigned wanted = slab_batch(slab, batch_size(magazine) - taken);
  return slab_take(slab, &heap->owner, magazine->top + taken, wanted);
}

/* Blocks that have been out before, from several slabs when the first has but a few. */
static unsigned gather(struct heap *heap, unsigned class) {
  struct slab *slab = heap->owner.bins[class].current;
  unsigned wanted = batch_size(&heap->magazines[class]), taken = 0;
  if (slab && slab_reusable(slab)) {
    count(&heap->owner.counters, COUNT_refill_current);
    taken = take_more(heap, slab, 0);
  }
  while (taken * 2 < wanted && (slab = supply_reuse(&heap->owner, class)))
    taken += take_more(heap, slab, taken);
  return taken;
}

/* The system is asked last, when nothing that rests in the thread's own caches helps either. */
static struct slab *touch(struct heap *heap, unsigned class) {
  struct slab *slab = starter_take_along(heap, class);
  if (slab) return slab;
  if (!relief_is_possible(heap)) return supply_touch(&heap->owner, class, AS_FAR_AS_THE_SYSTEM);
  slab = supply_touch(&heap->owner, class, WITHIN_POOL);
  if (LIKELY(slab)) return slab;
  leave(heap);
  relief_give(heap);
  enter(heap);
  return supply_pass(&heap->owner, class);
}

/* From where memory has been used, then from where it has not. */
static unsigned fill(struct heap *heap, unsigned class) {
  unsigned taken = gather(heap, class);
  if (!taken) taken = borrow(heap, class);
  if (taken) return taken;
  struct slab *slab = touch(heap, class);
  return slab ? take_more(heap, slab, 0) : 0;
}

bool batch_refill(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  unsigned shared = starter_take(heap, class, magazine->top, magazine_capacity(magazine));
  if (UNLIKELY(shared)) {
    count(&heap->owner.counters, COUNT_refill_starter);
    note_batch(heap, class, shared);
    return true;
  }
  class_figures_need(heap);
  enter(heap);
  glance(heap, class);
  reuse_judge(heap, class);
  capacity_note_refill(heap, class);
  unsigned taken = fill(heap, class);
  if (taken) note_batch(heap, class, taken);
  leave(heap);
  return taken != 0;
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

/* Blocks that were freed in no order: many have another slab than the one before, and with a large live set none
 * of their records is in the cache.  They are taken in groups, one by one, what they need fetched ahead. */
enum { GROUP_BLOCKS = 16 };

/* The first half stands for all.  From one change in four a visit to a slab for every run, and a branch that cannot
 * be foreseen, cost more. */
static bool are_scattered(void *const *blocks) {
  enum { LOOKED_AT = GROUP_BLOCKS / 2 };
  unsigned changes = 0;
  for (unsigned at = 0; at < LOOKED_AT; at++)
    changes += granule_of((uintptr_t)blocks[at]) != granule_of((uintptr_t)blocks[at + 1]);
  return changes >= LOOKED_AT / 4;
}

/* A block of a slab with one slot; found without a look at what may not be in the cache. */
struct scattered {
  size_t granule, index;
  struct slab *slab;
};

static struct scattered fetch(uintptr_t block, const struct slab_shape *shape) {
  size_t granule = granule_of(block), slot = granule % GRANULES_PER_CHUNK;
  struct slab_chunk *chunk = slab_chunk_of(granule);
  size_t index = slab_block_index(shape, block % GRANULE_BYTES);
  PREFETCH(&chunk->slabs[slot].free_local);
  if (LIKELY(index < shape->capacity))
    PREFETCH(&slab_local_bits(chunk, (unsigned)slot, shape)[index / 64]);
  return (struct scattered){granule, index, &chunk->slabs[slot]};
}

static unsigned give_group(struct owner *owner, unsigned class, void *const *blocks,
                           struct counters *counters) {
  const struct slab_shape *shape = &slab_shapes[class];
  const uint32_t own = owner->tag | class;
  struct scattered group[GROUP_BLOCKS];
  for (unsigned at = 0; at < GROUP_BLOCKS; at++) group[at] = fetch((uintptr_t)blocks[at], shape);
  for (unsigned at = 0; at < GROUP_BLOCKS; at++) {
    /* relaxed: it changes to or from the owner's only under the latch that we hold, as slab->owner does. */
    bool is_given = load_relaxed(&window.owner_map[group[at].granule]) == own &&
                    group[at].index < shape->capacity &&
                    slab_put_one(group[at].slab, class, (unsigned)group[at].index, owner);
    if (UNLIKELY(!is_given)) give_to_slab(owner, &blocks[at], 1, counters);
  }
  return GROUP_BLOCKS;
}

/* Run by run, to the end of a group at least: a group is judged once. */
static unsigned give_runs(struct owner *owner, void *const *blocks, unsigned block_count,
                          struct counters *counters) {
  unsigned given = 0;
  while (given < GROUP_BLOCKS)
    given += give_to_slab(owner, blocks + given, block_count - given, counters);
  return given;
}

void batch_free(struct owner *owner, void **blocks, unsigned block_count,
                struct counters *counters) {
  unsigned class = owner_map_entry((uintptr_t)*blocks) & MAP_CLASS_MASK;
  bool may_scatter = owner && slots_of_class(class) == 1;
  for (unsigned given; block_count; blocks += given, block_count -= given) {
    if (!may_scatter || block_count < GROUP_BLOCKS)
      given = give_to_slab(owner, blocks, block_count, counters);
    else if (are_scattered(blocks))
      given = give_group(owner, class, blocks, counters);
    else
      given = give_runs(owner, blocks, block_count, counters);
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
    purge_want(); /* pages may be free now: slab/pages.h */
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
  remote_buffer_empty(heap);
  quarantine_empty(heap);
}
