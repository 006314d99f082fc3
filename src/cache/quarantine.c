#include "cache/quarantine.h"

#include "cache/class_figures.h"
#include "cache/supply.h"
#include "config/options.h"
#include "hardened/wipe.h"
#include "map/metadata.h"
#include "purge/purge.h"
#include "ranges/range.h"
#include "report/report.h"
#include "slab/batch_free.h"
#include "slab/slab.h"

/* Bounds the ready blocks of a class: few large ones. */
#define READY_BYTES ((size_t)128 << 10)

struct quarantine *quarantine_make(struct heap *heap) {
  struct quarantine *quarantine = metadata_allocate(sizeof *quarantine);
  if (!quarantine) return NULL;
  quarantine->random = os_random() | 1;
  quarantine->block_most = QUARANTINE_BLOCKS;
  for (unsigned class = 0; class < FITTED_CLASS_FIRST; class ++) { /* hardened mode makes none */
    size_t most = READY_BYTES / class_bytes(class);
    quarantine->ready_most[class] = (uint8_t)(most < READY_BLOCKS ? most : READY_BLOCKS);
  }
  show(heap, quarantine, quarantine); /* relaxed: other threads find zeros in it, or the values */
  return quarantine;
}

static ATOMIC(uintptr_t) *outgoing(struct quarantine *quarantine) {
  return &quarantine->blocks[QUARANTINE_BLOCKS];
}

/* ---- checks ---------------------------------------------------------------------------------- */

void quarantine_fail_untouched(uintptr_t block, unsigned class) {
  size_t block_bytes = class_bytes(class), offset = wipe_find_written(block, block_bytes);
  struct block_description description = slab_describe(slab_of_block(block), block);
  report_misuse(&(struct misuse){"write after", "free", block, &description, 0, false},
                "the free block of %zu bytes was written to at offset %zu", block_bytes, offset);
  wipe_block(block, block_bytes); /* as all free blocks are */
}

/* The waiting blocks are smaller now: lets more of them wait. */
static void let_more_wait(struct quarantine *quarantine) {
  if (quarantine->bytes > options.quarantine_bytes / 4 * 3) return;
  uint32_t most = quarantine->block_most + quarantine->block_most / 8 + 1;
  quarantine->block_most = most < QUARANTINE_BLOCKS ? most : QUARANTINE_BLOCKS;
}

bool quarantine_plan_check(struct quarantine *quarantine) {
  let_more_wait(quarantine);
  if (options.harden > 1 || quarantine->checks < FIRST_CHECKS)
    quarantine->checks++;
  else
    quarantine->frees_until_check = quarantine_draw(quarantine, 2 * CHECK_PERIOD - 1);
  return true;
}

/* ---- on the way home ------------------------------------------------------------------------- */

static void go_home(struct heap *heap, uintptr_t block) {
  uint32_t entry = owner_map_entry(block);
  unsigned class = map_slab_class(entry);
  class_figures_add(heap, class, flushed_blocks, 1);
  if (LIKELY(entry == map_entry(heap->owner.tag, class))) {
    struct slab *slab = slab_of_block(block);
    size_t index = slab_block_index(&slab_shapes[class], block - slab->base);
    if (LIKELY(slab_put_one(slab, class, (unsigned)index, &heap->owner))) return;
  }
  void *blocks[] = {(void *)block};
  batch_free(&heap->owner, blocks, 1, &heap->owner.counters);
}

static void flush_outgoing(struct heap *heap, struct quarantine *quarantine) {
  owner_begin_work(&heap->owner);
  count(&heap->owner.counters, COUNT_flushes);
  count_add(&heap->owner.counters, COUNT_flushed_blocks, quarantine->outgoing_count);
  for (uint32_t index = 0; index < quarantine->outgoing_count; index++) {
    ATOMIC(uintptr_t) *place = &outgoing(quarantine)[index];
    uintptr_t block = load_relaxed(place);
    store_relaxed(place, 0);
    go_home(heap, block);
  }
  quarantine->outgoing_count = quarantine->outgoing_bytes = 0;
  latch_give(&heap->owner);
  purge_want(); /* pages may be free now: slab/pages.h */
}

/* True when all outgoing blocks were sent. */
static bool send_home(struct heap *heap, struct quarantine *quarantine, uintptr_t block) {
  store_relaxed(&outgoing(quarantine)[quarantine->outgoing_count++], block);
  quarantine->outgoing_bytes += (uint32_t)class_bytes(map_slab_class(owner_map_entry(block)));
  if (LIKELY(quarantine->outgoing_count < OUTGOING_BLOCKS &&
             quarantine->outgoing_bytes < OUTGOING_BYTES))
    return false;
  flush_outgoing(heap, quarantine);
  return true;
}

/* ---- ready ----------------------------------------------------------------------------------- */

static unsigned take_from_slabs(struct heap *heap, struct quarantine *quarantine, unsigned class,
                                unsigned wanted) {
  struct owner *owner = &heap->owner;
  ATOMIC(uintptr_t) *places = quarantine_ready(quarantine, class);
  struct supply supply = {.owner = owner, .class = class, .users = FOR_HARDENED};
  struct slab *slab = supply_climb(&supply);
  unsigned taken = 0;
  for (; slab && slab->free_local && taken < wanted; taken++) {
    void *block = slab_take_at_random(slab, owner, random_next(&quarantine->random));
    store_relaxed(&places[taken], (uintptr_t)block);
  }
  return taken;
}

bool quarantine_refill(struct heap *heap, struct quarantine *quarantine, unsigned class) {
  class_figures_need(heap);
  owner_begin_work(&heap->owner);
  /* A refill fills at most half: the rest is for blocks that come back. */
  unsigned batch = (quarantine->ready_most[class] + 1u) / 2;
  unsigned taken = take_from_slabs(heap, quarantine, class, batch);
  quarantine->ready_count[class] = (uint8_t)taken;
  class_figures_add(heap, class, refilled_blocks, taken);
  count(&heap->owner.counters, COUNT_refills);
  count_add(&heap->owner.counters, COUNT_refilled_blocks, taken);
  latch_give(&heap->owner);
  return taken != 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

INLINE bool release(struct heap *heap, struct quarantine *quarantine, uintptr_t block,
                    uint32_t entry) {
  unsigned class = map_slab_class(entry);
  if (options.harden > 1) quarantine_check_untouched(block, class);
  if (quarantine->ready_count[class] >= quarantine->ready_most[class])
    return send_home(heap, quarantine, block);
  store_relaxed(&quarantine_ready(quarantine, class)[quarantine->ready_count[class]++], block);
  return false;
}

/* Exchanges the block that leaves next. It is drawn one call before it leaves: its map entry is
 * known by then, and its first line is in the cache when malloc checks it. */
INLINE uintptr_t exchange_leaving(struct quarantine *quarantine, uintptr_t next) {
  ATOMIC(uintptr_t) *place = &quarantine->blocks[LEAVING_PLACE];
  uintptr_t block = load_relaxed(place);
  PREFETCH((void *)next);
  store_relaxed(place, next);
  return block;
}

INLINE bool let_go(struct heap *heap, struct quarantine *quarantine, uintptr_t block) {
  if (UNLIKELY(!block)) return false;
  uint32_t entry = owner_map_entry(block);
  quarantine->bytes -= class_bytes(map_slab_class(entry));
  if (UNLIKELY(block == quarantine->latest)) quarantine->latest = 0;
  return release(heap, quarantine, block, entry);
}

/* Replaces a random waiting block, which leaves next, by the last waiting one or `instead`. */
INLINE bool let_one_go(struct heap *heap, struct quarantine *quarantine, uintptr_t instead) {
  uint32_t count = load_relaxed(&quarantine->block_count);
  ATOMIC(uintptr_t) *place = &quarantine->blocks[quarantine_draw(quarantine, count)];
  uintptr_t next = load_relaxed(place);
  if (!instead) {
    ATOMIC(uintptr_t) *last = &quarantine->blocks[count - 1];
    instead = load_relaxed(last);
    store_relaxed(last, 0);
    store_relaxed(&quarantine->block_count, count - 1);
    if (place == last) instead = 0;
  }
  store_relaxed(place, instead);
  return let_go(heap, quarantine, exchange_leaving(quarantine, next));
}

/* Called when waiting blocks exceed their bounds: an eighth of the bytes leaves, and the blocks
 * left are the new bound. So one block enters and one leaves most of the time, at any size: a
 * mispredicted comparison costs as much as a cache miss. */
NOINLINE static bool let_more_go(struct heap *heap, struct quarantine *quarantine) {
  size_t most = options.quarantine_bytes - options.quarantine_bytes / 8;
  bool went_home = false;
  while (quarantine->bytes > most && load_relaxed(&quarantine->block_count))
    went_home |= let_one_go(heap, quarantine, 0);
  uint32_t left = load_relaxed(&quarantine->block_count);
  quarantine->block_most = left ? left : 1;
  return went_home;
}

/* Frees the block at once when there is no memory for a quarantine. */
COLD static bool give_at_once(struct heap *heap, uintptr_t block) {
  void *blocks[] = {(void *)block};
  latch_take(&heap->owner);
  batch_free(&heap->owner, blocks, 1, &heap->owner.counters);
  latch_give(&heap->owner);
  return true;
}

bool quarantine_add(struct heap *heap, uintptr_t block, unsigned class) {
  struct quarantine *quarantine = quarantine_of(heap);
  size_t block_bytes = class_bytes(class);
  bool went_home = false;
  if (UNLIKELY(!quarantine)) return give_at_once(heap, block);
  if (UNLIKELY(block_bytes > options.quarantine_bytes))
    return release(heap, quarantine, block, owner_map_entry(block));
  uint32_t count = load_relaxed(&quarantine->block_count);
  quarantine->bytes += block_bytes;
  if (LIKELY(count >= quarantine->block_most)) {
    went_home = let_one_go(heap, quarantine, block);
  } else {
    store_relaxed(&quarantine->blocks[count], block);
    store_relaxed(&quarantine->block_count, count + 1);
  }
  quarantine->latest = block;
  if (UNLIKELY(quarantine->bytes > options.quarantine_bytes))
    went_home |= let_more_go(heap, quarantine);
  return went_home;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static size_t granules_of(size_t granule) { return range_info(granule)->granules; }

static void release_oldest_range(struct heap *heap) {
  struct quarantine *quarantine = heap->quarantine;
  size_t granule = quarantine->ranges[quarantine->oldest_range];
  quarantine->range_granules -= granules_of(granule);
  quarantine->oldest_range = (quarantine->oldest_range + 1) % QUARANTINE_RANGES;
  quarantine->range_count--;
  range_give_empty(granule, &heap->owner.counters);
}

void quarantine_add_range(struct heap *heap, size_t granule) {
  struct quarantine *quarantine = quarantine_of(heap);
  if (!quarantine || granules_of(granule) > QUARANTINE_GRANULES) {
    range_give_empty(granule, &heap->owner.counters);
    return;
  }
  quarantine->range_granules += granules_of(granule);
  while (quarantine->range_count == QUARANTINE_RANGES ||
         quarantine->range_granules > QUARANTINE_GRANULES)
    release_oldest_range(heap);
  uint32_t free_place = quarantine->oldest_range + quarantine->range_count;
  quarantine->ranges[free_place % QUARANTINE_RANGES] = granule;
  quarantine->range_count++;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void empty_ready(struct heap *heap, struct quarantine *quarantine) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    for (uintptr_t block; (block = quarantine_take(quarantine, class));)
      send_home(heap, quarantine, block);
}

NOINLINE static void empty_waiting(struct heap *heap, struct quarantine *quarantine) {
  while (load_relaxed(&quarantine->block_count)) let_one_go(heap, quarantine, 0);
  let_go(heap, quarantine, exchange_leaving(quarantine, 0));
  while (quarantine->range_count) release_oldest_range(heap);
}

RESIDENT void quarantine_flush(struct heap *heap) {
  if (LIKELY(heap->quarantine == NULL)) return;
  empty_ready(heap, heap->quarantine);
  flush_outgoing(heap, heap->quarantine);
}

RESIDENT void quarantine_empty(struct heap *heap) {
  if (UNLIKELY(heap->quarantine != NULL)) empty_waiting(heap, heap->quarantine);
  quarantine_flush(heap);
}
