#include "checked/checked_range.h"

#include <string.h>

#include "cache/quarantine.h"
#include "foreign/pointer.h"
#include "hardened/trailer.h"
#include "large/big.h"
#include "named/named_heap.h"
#include "report/report.h"

/* Whether a page at least precedes the block. */
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

/* The rightmost place that the alignment allows; the colour's field holds no more than a granule. */
static size_t place_in(size_t granule, size_t size, size_t alignment) {
  if (!has_front(alignment)) return 0;
  uintptr_t last = end_of_range(granule) - TRAILER_BYTES - size;
  size_t unit = alignment < sizeof(void *) * 2 ? sizeof(void *) * 2 : alignment;
  size_t offset = round_down(last, unit) - granule_address(granule);
  size_t most = round_down(UINT16_MAX, unit);
  return offset < most ? offset : most;
}

static uintptr_t first_page(uintptr_t block) { return round_down(block, os_page_bytes()); }

/* Opens the block's pages, and closes all others. A range that is not known to be closed may be so in parts; the call does not fail if
 * only its ends stay open, as the system has no more mappings. */
static bool open_for(size_t granule, uintptr_t block) {
  uintptr_t begin = granule_address(granule), first = first_page(block),
            end = end_of_range(granule);
  if (!os_open_pages((void *)first, end - first)) return false;
  if (LIKELY(range_info(granule)->is_closed)) return true;
  if (first != begin) os_close_pages((void *)begin, first - begin);
  os_close_pages((void *)end, os_page_bytes());
  return true;
}

/* A block that may grow on gets half as much room, in addresses alone: strict overcommit would charge it. */
static size_t take_range(struct heap *heap, const struct allocation *allocation, size_t granules) {
  struct range_request range = {granules, alignment_granules(allocation->alignment),
                                heap->owner.number, granules / HEADROOM_DIVISOR};
  size_t granule = NO_GRANULE;
  if (allocation->is_growing && !os_overcommit_is_strict())
    granule = range_take_fresh(&range, &heap->owner.counters);
  range.headroom = 0;
  return granule != NO_GRANULE ? granule : range_take(&range, &heap->owner.counters);
}

void *checked_range_allocate(struct heap *heap, struct allocation *allocation) {
  size_t size = allocation->size;
  size_t granules = granules_for(size, allocation->alignment);
  if (granules > load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK) return NULL;
  size_t granule = take_range(heap, allocation, granules);
  if (granule == NO_GRANULE) return NULL;
  struct range_info *info = range_info(granule);
  info->site = allocation->site;
  info->colour_bytes = (uint16_t)place_in(granule, size, allocation->alignment);
  uintptr_t block = range_block(granule);
  bool is_open = open_for(granule, block);
  info->is_closed = false; /* a refused call may have been done in part */
  if (!is_open) {
    range_give(granule, (uint32_t)os_now_coarse_ms(), &heap->owner.counters);
    return NULL;
  }
  allocation->is_zero = info->is_zero;
  memset((void *)first_page(block), SLACK_BYTE, block - first_page(block));
  trailer_write(block, checked_range_capacity(block), size, allocation->maker);
  range_note_begin(granule, granule);
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

/* From here on a mapping of its own costs less than a guard mark for each page, though it divides the mapping around it. */
#define CLOSED_BY_MAPPING_BYTES ((size_t)1 << 20)

static bool close_whole(size_t granule) {
  void *begin = (void *)granule_address(granule);
  size_t bytes = (size_t)range_info(granule)->granules << GRANULE_SHIFT;
  if (bytes >= CLOSED_BY_MAPPING_BYTES && os_close_by_mapping(begin, bytes)) {
    range_note_moved(granule);
    return true;
  }
  return os_close_pages(begin, bytes);
}

/* Closes the range, or else wipes it from its first open byte on; then it waits. */
static void bury(struct heap *heap, size_t granule, uintptr_t open) {
  struct range_info *info = range_info(granule);
  info->is_closed = close_whole(granule);
  if (UNLIKELY(!info->is_closed)) memset((void *)open, 0, end_of_range(granule) - open);
  if (heap)
    quarantine_add_range(heap, granule);
  else
    range_give_empty(granule, heap_counters(heap));
}

void checked_range_free(struct heap *heap, uintptr_t block, uint32_t entry) {
  size_t granule = granule_of(block);
  check_front(block, entry);
  if (big_note_freed(granule, heap_counters(heap)))
    bury(heap, granule, first_page(block));
  else
    pointer_fail("free", block); /* another thread freed it first */
}

/* ---- realloc ------------------------------------------------------------------------------------------------- */

/* Opens the closed page at the end, and closes another. */
static bool grow(size_t granule, size_t granules, struct counters *counters) {
  size_t before = range_info(granule)->granules;
  uintptr_t begin = end_of_range(granule);
  if (!range_extend(granule, granules, counters)) return false;
  uintptr_t end = end_of_range(granule);
  if (!os_open_pages((void *)begin, end - begin)) {
    range_shrink(granule, before, counters);
    return false;
  }
  range_info(granule)->is_closed = false;
  os_close_pages((void *)end, os_page_bytes());
  range_note_begin(granule, granule + before - 1);
  return true;
}

/* The part cut off waits as if it had been freed. */
static bool shrink(struct heap *heap, size_t granule, size_t granules) {
  if (!range_cut(granule, granules, heap_counters(heap))) return false;
  os_close_pages((void *)end_of_range(granule), os_page_bytes());
  bury(heap, granule + granules, granule_address(granule + granules));
  return true;
}

bool checked_range_resize(struct heap *heap, uintptr_t block, size_t size) {
  size_t granule = granule_of(block), before = range_info(granule)->granules;
  size_t bytes = block - granule_address(granule) + size + TRAILER_BYTES + os_page_bytes();
  size_t granules = (bytes + GRANULE_BYTES - 1) >> GRANULE_SHIFT, capacity_bytes;
  enum maker maker = trailer_maker(block, checked_range_capacity(block));
  bool is_resized = granules > before ? grow(granule, granules, heap_counters(heap))
                                      : granules == before || shrink(heap, granule, granules);
  if (!is_resized) return false;
  big_count((int64_t)size_of_granules(granules) - (int64_t)size_of_granules(before), 0);
  capacity_bytes = checked_range_capacity(block);
  trailer_write(block, capacity_bytes, size, maker);
  return true;
}

/* Writes slack and trailer around a block once more. */
static void write_ends(uintptr_t block, size_t size, enum maker maker) {
  memset((void *)first_page(block), SLACK_BYTE, block - first_page(block));
  trailer_write(block, checked_range_capacity(block), size, maker);
}

/* Whole pages move, so the block begins in its page where the source does: that may be in the page before the target's first. */
uintptr_t checked_range_move(uintptr_t *target, uintptr_t source, size_t bytes,
                             struct counters *counters) {
  uintptr_t first = first_page(*target), block = *target - (*target - source) % os_page_bytes();
  size_t size, source_size;
  if (block < granule_address(granule_of(*target)) ||
      !trailer_read(*target, checked_range_capacity(*target), &size) ||
      !trailer_read(source, checked_range_capacity(source), &source_size))
    return 0;
  if (block < first && !os_open_pages((void *)first_page(block), first - first_page(block)))
    return 0;
  if (!big_move_pages(target, block, source, bytes, counters)) {
    if (*target && block < first) os_close_pages((void *)first_page(block), os_page_bytes());
    return 0;
  }
  uintptr_t end = round_up(block + bytes, os_page_bytes());
  memset((void *)(block + bytes), 0, end - (block + bytes)); /* the source's trailer */
  write_ends(block, size, MADE_BY_MALLOC);
  write_ends(source, source_size, MADE_BY_MALLOC);
  return block;
}
