#include "cache/moving.h"

#include "cache/class_figures.h"
#include "cache/flush.h"
#include "cache/supply.h"
#include "slab/batch_free.h"
#include "slab/pending.h"
#include "slab/slab.h"

unsigned moving_gain(const void *block) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  unsigned class = map_threads_class(entry);
  if (class >= SLAB_CLASS_COUNT) return 0;
  const struct slab *slab = slab_of_block((uintptr_t)block);
  const struct owner *owner = load_relaxed(&slab->owner);
  unsigned percent = load_relaxed(&slab->free_local_shown) * 100u / slab->capacity;
  bool is_current = owner && load_relaxed(&owner->bins[class].current_shown) == slab;
  return percent < MOVING_GAIN_MIN || is_current ? 0 : percent;
}

/* Listed slabs that are compared for one choice, after which most blocks of the chosen one can be
 * taken; next time others are looked at. */
enum { SLABS_COMPARED = 64 };

static struct slab *find_densest(struct bin *bin) {
  struct slab *densest = bin->partial, *slab = densest;
  for (unsigned seen = 0; slab && seen < SLABS_COMPARED; seen++, slab = slab->next)
    if (slab->free_local < densest->free_local) densest = slab;
  if (slab) slab_rotate(bin, slab);
  return densest;
}

/* Such slabs are listed last. */
static void release_free(struct owner *owner, struct bin *bin) {
  while (bin->free_count && slab_try_release(bin->partial->previous, owner)) continue;
}

enum { DRAINED_SLABS = 4 };

/* The magazine's blocks and remote frees first: they keep sparse slabs. */
static struct slab *find(struct heap *heap, unsigned class) {
  struct owner *owner = &heap->owner;
  struct bin *bin = &owner->bins[class];
  batch_flush_all(heap, class);
  pending_drain_class(owner, class, DRAINED_SLABS);
  release_free(owner, bin);
  if (bin->current && bin->current->free_local) return bin->current;
  struct slab *densest = find_densest(bin);
  struct supply supply = {.owner = owner, .class = class, .users = FOR_NAMED, .wanted = 1};
  if (!densest) return supply_climb(&supply);
  slab_unlist(densest, owner); /* the current one is full */
  show(bin, current, densest);
  return densest;
}

void *moving_take(struct heap *heap, unsigned class) {
  struct owner *owner = &heap->owner;
  class_figures_need(heap);
  owner_begin_work(owner);
  struct slab *slab = owner->bins[class].current;
  if (!slab || !slab->free_local) slab = find(heap, class);
  void *block = slab ? slab_take_first(slab, owner) : NULL;
  if (block) class_figures_add(heap, class, refilled_blocks, 1);
  latch_give(owner);
  return block;
}

/* Pages of such slabs go with the next round. */
enum { EMPTIED_AGE_MS = 3600 * 1000 };

void moving_give(struct heap *heap, unsigned class, void *block) {
  struct owner *owner = &heap->owner;
  owner_begin_work(owner);
  owner->free_age_ms = EMPTIED_AGE_MS;
  batch_free(owner, &block, 1, &owner->counters);
  class_figures_add(heap, class, flushed_blocks, 1);
  release_free(owner, &owner->bins[class]);
  owner->free_age_ms = 0;
  latch_give(owner);
}
