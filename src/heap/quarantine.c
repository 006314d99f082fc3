#include "heap/quarantine.h"

#include <string.h>

#include "base/bits.h"
#include "config/options.h"
#include "guard/trailer.h"
#include "heap/batch.h"
#include "heap/class_figures.h"
#include "map/metadata.h"
#include "pool/range.h"
#include "report/report.h"
#include "slab/slab.h"

/* ---- the ring ------------------------------------------------------------------------------------------ */

static struct quarantine *quarantine_of(struct heap *heap) {
  if (LIKELY(heap->quarantine)) return heap->quarantine;
  heap->quarantine = metadata_allocate(sizeof *heap->quarantine);
  if (heap->quarantine) heap->quarantine->random = os_random() | 1;
  return heap->quarantine;
}

uint64_t quarantine_random(struct heap *heap) {
  struct quarantine *quarantine = quarantine_of(heap);
  return quarantine ? random_next(&quarantine->random) : os_random();
}

static ATOMIC(uintptr_t) *place(struct quarantine *quarantine, uint32_t index) {
  return &quarantine->blocks[(quarantine->oldest + index) % QUARANTINE_BLOCKS];
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

void quarantine_check_untouched(uintptr_t block, const struct slab *slab) {
  size_t offset = find_nonzero(block, slab->block_bytes);
  if (LIKELY(offset == slab->block_bytes)) return;
  struct block_description description = slab_describe(slab, block);
  report_write_after_free(block, offset, &description);
  memset((void *)block, 0, slab->block_bytes); /* as all free blocks are */
}

static void go_home(struct heap *heap, uintptr_t block) {
  struct slab *slab = slab_of_block(block);
  void *blocks[] = {(void *)block};
  if (options.harden > 1) quarantine_check_untouched(block, slab); /* else when it is used again */
  class_figures_flushed(heap, slab->class, 1);
  latch_take(&heap->owner);
  batch_free(&heap->owner, blocks, 1, &heap->owner.counters);
  latch_give(&heap->owner);
}

static void release_oldest(struct heap *heap) {
  struct quarantine *quarantine = heap->quarantine;
  uintptr_t block = load_relaxed(place(quarantine, 0));
  store_relaxed(place(quarantine, 0), 0);
  quarantine->oldest = (quarantine->oldest + 1) % QUARANTINE_BLOCKS;
  add_single_writer(&quarantine->block_count, (uint32_t)-1);
  quarantine->bytes -= slab_of_block(block)->block_bytes;
  go_home(heap, block);
}

void quarantine_add(struct heap *heap, uintptr_t block, size_t block_bytes) {
  struct quarantine *quarantine = quarantine_of(heap);
  if (!quarantine || block_bytes > options.quarantine_bytes) {
    go_home(heap, block);
    return;
  }
  while (load_relaxed(&quarantine->block_count) == QUARANTINE_BLOCKS ||
         quarantine->bytes + block_bytes > options.quarantine_bytes)
    release_oldest(heap);
  uint32_t count = load_relaxed(&quarantine->block_count);
  ATOMIC(uintptr_t) *other =
      place(quarantine, (uint32_t)(random_next(&quarantine->random) % (count + 1)));
  store_relaxed(place(quarantine, count), load_relaxed(other));
  store_relaxed(other, block);
  store_relaxed(&quarantine->block_count, count + 1);
  quarantine->bytes += block_bytes;
}

/* ---- ranges -------------------------------------------------------------------------------------------- */

void quarantine_give_range(size_t granule, struct counters *counters) {
  size_t bytes = (size_t)range_info(granule)->granules << GRANULE_SHIFT;
  void *begin = (void *)granule_address(granule);
  enum os_change result = os_open_pages(begin, bytes) ? OS_DONE : os_remap(begin, bytes);
  if (result == OS_DONE) range_give(granule, (uint32_t)os_now_coarse_ms(), counters);
  if (result == OS_LOST) range_give_lost(granule, counters);
  /* REFUSED: the pages stay closed, and the range is lost: addresses, and no memory. */
}

static void release_oldest_range(struct heap *heap) {
  struct quarantine *quarantine = heap->quarantine;
  size_t granule = quarantine->ranges[quarantine->oldest_range];
  quarantine->oldest_range = (quarantine->oldest_range + 1) % QUARANTINE_RANGES;
  quarantine->range_count--;
  quarantine_give_range(granule, &heap->owner.counters);
}

void quarantine_add_range(struct heap *heap, size_t granule) {
  struct quarantine *quarantine = quarantine_of(heap);
  if (!quarantine) {
    quarantine_give_range(granule, &heap->owner.counters);
    return;
  }
  if (quarantine->range_count == QUARANTINE_RANGES) release_oldest_range(heap);
  uint32_t free_place = quarantine->oldest_range + quarantine->range_count;
  quarantine->ranges[free_place % QUARANTINE_RANGES] = granule;
  quarantine->range_count++;
}

void quarantine_empty(struct heap *heap) {
  if (!heap->quarantine) return;
  while (load_relaxed(&heap->quarantine->block_count)) release_oldest(heap);
  while (heap->quarantine->range_count) release_oldest_range(heap);
}
