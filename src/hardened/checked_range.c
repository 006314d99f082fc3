#include "hardened/checked_range.h"

#include <string.h>

#include "cache/quarantine.h"
#include "config/options.h"
#include "guard/pointer.h"
#include "guard/trailer.h"
#include "large/big.h"
#include "named/named_heap.h"
#include "report/report.h"

/* A page before the block at least. */
static bool has_front(size_t alignment) { return alignment <= os_page_bytes(); }

static size_t granules_for(size_t size, size_t alignment) {
  size_t page_bytes = os_page_bytes();
  /* The colour's field holds no more than a granule: with pages of 64 KiB room for one would only be slack. */
  bool has_room = has_front(alignment) && page_bytes + alignment <= UINT16_MAX;
  size_t front_bytes = has_room ? page_bytes + alignment : 0;
  size_t bytes = front_bytes + size + TRAILER_BYTES + page_bytes;
  return (bytes + GRANULE_BYTES - 1) >> GRANULE_SHIFT;
}

static uintptr_t end_of_range(size_t granule) {
  return granule_address(granule + range_info(granule)->granules) - os_page_bytes();
}

size_t checked_range_capacity(uintptr_t block) { return end_of_range(granule_of(block)) - block; }

/* As far to the right as the alignment lets it; the colour's field holds no more than a granule. */
static size_t place_in(size_t granule, size_t size, size_t alignment) {
  if (!has_front(alignment)) return 0;
  uintptr_t last = end_of_range(granule) - TRAILER_BYTES - size;
  size_t unit = alignment < sizeof(void *) * 2 ? sizeof(void *) * 2 : alignment;
  size_t offset = round_down(last, unit) - granule_address(granule);
  size_t most = round_down(UINT16_MAX, unit);
  return offset < most ? offset : most;
}

static uintptr_t first_page(uintptr_t block) { return round_down(block, os_page_bytes()); }

/* The block's pages open, all others closed.  A range that is not known to be closed may be so in parts; that its ends are
 * not closed, as the system has no more mappings, is no reason to fail. */
static bool open_for(size_t granule, uintptr_t block) {
  uintptr_t begin = granule_address(granule), first = first_page(block),
            end = end_of_range(granule);
  if (!os_open_pages((void *)first, end - first)) return false;
  if (LIKELY(range_info(granule)->is_closed)) return true;
  if (first != begin) os_close_pages((void *)begin, first - begin);
  os_close_pages((void *)end, os_page_bytes());
  return true;
}

void *checked_range_allocate(struct heap *heap, struct allocation *allocation) {
  size_t size = allocation->size;
  size_t granules = granules_for(size, allocation->alignment);
  if (granules > load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK) return NULL;
  struct range_request range = {granules, alignment_granules(allocation->alignment),
                                heap->owner.number, FROM_ANY};
  size_t granule = range_take(&range, &heap->owner.counters);
  if (granule == NO_GRANULE) return NULL;
  struct range_info *info = range_info(granule);
  info->site = allocation->site;
  info->colour_bytes = (uint16_t)place_in(granule, size, allocation->alignment);
  uintptr_t block = range_block(granule);
  bool is_open = open_for(granule, block);
  info->is_closed = false; /* what was refused may have been done in part */
  if (!is_open) {
    range_give(granule, (uint32_t)os_now_coarse_ms(), &heap->owner.counters);
    return NULL;
  }
  allocation->is_zero = info->is_zero;
  memset((void *)first_page(block), SLACK_BYTE, block - first_page(block));
  trailer_write(block, checked_range_capacity(block), size, allocation->maker);
  range_note_begin(granule);
  big_note_taken(granule, size, &heap->owner.counters);
  return (void *)block;
}

static void check_front(uintptr_t block, uint32_t entry) {
  uintptr_t written = trailer_find_written(first_page(block), block);
  if (LIKELY(written == block)) return;
  struct block_description description =
      named_describe(block, entry, checked_range_capacity(block) - TRAILER_BYTES);
  report_write_beside(block, written, &description);
}

/* Closed, or else wiped. */
static void empty(size_t granule, uintptr_t block) {
  struct range_info *info = range_info(granule);
  uintptr_t first = first_page(block);
  info->is_closed =
      os_close_pages((void *)granule_address(granule), (size_t)info->granules << GRANULE_SHIFT);
  if (UNLIKELY(!info->is_closed)) memset((void *)first, 0, end_of_range(granule) - first);
}

void checked_range_free(struct heap *heap, uintptr_t block, uint32_t entry) {
  size_t granule = granule_of(block);
  struct counters *counters = heap_counters(heap);
  check_front(block, entry);
  if (!big_note_freed(granule, counters)) {
    pointer_fail("free", block); /* another thread was faster */
    return;
  }
  empty(granule, block);
  if (heap)
    quarantine_add_range(heap, granule);
  else
    range_give_empty(granule, counters);
}
