#include "checked/checked_range.h"

#include <string.h>

#include "cache/quarantine.h"
#include "foreign/pointer.h"
#include "guard/guarded.h"
#include "hardened/trailer.h"
#include "map/commit.h"
#include "named/named_heap.h"
#include "ranges/big.h"
#include "report/report.h"

/* Whether a page at least precedes the block. */
static bool has_front(size_t alignment) { return alignment <= os_page_bytes(); }

/* Pages that checked_range_move may fill begin a page earlier: such a block has two in front. */
#define MOVED_MIN_BYTES ((size_t)1 << 20)

/* The closed pages in front. The colour's field holds no more than a granule: pages of 64 KiB have
 * none there, only another block's. */
static size_t front_bytes(size_t size, size_t alignment) {
  size_t bytes = os_page_bytes() << (size >= MOVED_MIN_BYTES);
  return has_front(alignment) && bytes + os_page_bytes() <= UINT16_MAX ? bytes : 0;
}

static size_t granules_for(size_t size, size_t alignment) {
  size_t page_bytes = os_page_bytes();
  size_t bytes = front_bytes(size, alignment) + round_up(size, page_bytes) + page_bytes;
  return (bytes + GRANULE_BYTES - 1) >> GRANULE_SHIFT;
}

static uintptr_t end_of_range(size_t granule) {
  return granule_address(granule + range_info(granule)->granules);
}
static void set_end_of_block(size_t granule, uintptr_t end) {
  range_info(granule)->closed_pages = (uint8_t)((end_of_range(granule) - end) / os_page_bytes());
}
static uintptr_t end_for(uintptr_t block, size_t size) {
  return round_up(block + size, os_page_bytes());
}

size_t checked_range_capacity(uintptr_t block) {
  return range_end_of_block(granule_of(block)) - block;
}

/* Where the block begins, as near to the end of its last page as the alignment allows. */
static size_t place_in(size_t size, size_t alignment) {
  if (!has_front(alignment)) return 0;
  size_t unit = alignment < sizeof(void *) * 2 ? sizeof(void *) * 2 : alignment;
  return front_bytes(size, alignment) + round_down(round_up(size, os_page_bytes()) - size, unit);
}

static uintptr_t first_page(uintptr_t block) { return round_down(block, os_page_bytes()); }

void checked_range_write_end(uintptr_t block, size_t size, enum maker maker) {
  struct range_info *info = range_info(granule_of(block));
  size_t slack_bytes = checked_range_capacity(block) - size;
  uintptr_t slack = block + size;
  ASSERT(slack_bytes <= SLACK_MAX_BYTES);
  info->slack_bytes = (uint16_t)slack_bytes;
  info->maker = (uint8_t)maker;
  memset((void *)slack, SLACK_BYTE, trailer_slack_end(slack, slack_bytes) - slack);
}

/* Writes the slack on both sides. */
static void write_ends(uintptr_t block, size_t size, enum maker maker) {
  memset((void *)first_page(block), SLACK_BYTE, block - first_page(block));
  checked_range_write_end(block, size, maker);
}

/* Opens the block's pages, and closes all others. A range that is not known to be closed may be so
 * in parts; the call does not fail if some others stay open, as the system has no more mappings. */
static bool open_for(size_t granule, uintptr_t block) {
  uintptr_t begin = granule_address(granule), first = first_page(block);
  uintptr_t end = range_end_of_block(granule), range_end = end_of_range(granule);
  if (first != end && !os_open_pages((void *)first, end - first)) return false;
  if (LIKELY(range_info(granule)->is_closed)) return true;
  if (first != begin) os_close_pages((void *)begin, first - begin);
  os_close_pages((void *)end, range_end - end);
  return true;
}

/* A block that may grow on gets half as much room, in addresses alone: strict overcommit would
 * charge it. */
static size_t take_range(struct heap *heap, const struct allocation *allocation, size_t granules) {
  size_t headroom = (granules + HEADROOM_DIVISOR - 1) / HEADROOM_DIVISOR;
  struct range_request range = {granules, alignment_granules(allocation->alignment),
                                heap->owner.number, headroom};
  size_t granule = NO_GRANULE;
  if (allocation->is_growing && !os_overcommit_is_strict())
    granule = range_take_fresh(&range, &heap->owner.counters);
  range.headroom = 0;
  return granule != NO_GRANULE ? granule : range_take(&range, &heap->owner.counters);
}

/* Notes where the block will begin and its last page end. */
static void lay_out(size_t granule, size_t offset, size_t size) {
  range_info(granule)->colour_bytes = (uint16_t)offset;
  set_end_of_block(granule, end_for(range_block(granule), size));
}

/* Makes the block of a live range that is laid out; 0 when the system refuses. */
static uintptr_t begin(size_t granule, struct allocation *allocation, struct counters *counters) {
  struct range_info *info = range_info(granule);
  uintptr_t block = range_block(granule);
  bool is_open = open_for(granule, block);
  info->is_closed = false; /* a refused call may have been done in part */
  if (!is_open) return 0;
  info->site = allocation->site;
  allocation->is_zero = info->is_zero;
  write_ends(block, allocation->size, allocation->maker);
  range_note_begin(granule, granule);
  if (info->is_guarded) guarded_note_malloc(granule);
  big_note_taken(granule, allocation->size, counters);
  return block;
}

void *checked_range_allocate(struct heap *heap, struct allocation *allocation) {
  size_t size = allocation->size;
  size_t granules = granules_for(size, allocation->alignment);
  if (granules > load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK) return NULL;
  size_t granule = take_range(heap, allocation, granules);
  if (granule == NO_GRANULE) return NULL;
  lay_out(granule, place_in(size, allocation->alignment), size);
  uintptr_t block = begin(granule, allocation, &heap->owner.counters);
  if (!block) range_give(granule, (uint32_t)os_now_coarse_ms(), &heap->owner.counters);
  return (void *)block;
}

/* ---- guarded blocks -------------------------------------------------------------------------- */

/* Callers take larger blocks for Large ones. */
static bool may_be_guarded(size_t size, size_t alignment) {
  return guarded_is_ready() && size <= MID_MAX_BYTES && has_front(alignment) &&
         granules_for(size, alignment) <= guarded_granules();
}

/* Its open pages are all that it holds; a limit may forbid them. */
static void give_guarded(size_t granule) {
  commit_give(range_open_bytes(granule));
  guarded_give(granule);
}

void *checked_range_guard(struct heap *heap, struct allocation *allocation) {
  size_t size = allocation->size, alignment = allocation->alignment;
  if (!may_be_guarded(size, alignment) || !guard_sampler_chooses(&heap->guard_sampler)) return NULL;
  bool is_at_end = guard_sampler_draws_end(&heap->guard_sampler);
  size_t offset = is_at_end ? place_in(size, alignment) : front_bytes(size, alignment);
  size_t granule = guarded_take();
  if (granule == NO_GRANULE) return NULL;
  lay_out(granule, offset, size);
  if (!commit_take(range_open_bytes(granule))) {
    guarded_give(granule);
    return NULL;
  }
  uintptr_t block = begin(granule, allocation, &heap->owner.counters);
  if (!block) {
    give_guarded(granule);
    return NULL;
  }
  count(&heap->owner.counters, COUNT_guarded_blocks);
  os_watch_first();
  return (void *)block;
}

static void check_front(uintptr_t block, uint32_t entry) {
  uintptr_t written = trailer_find_written(first_page(block), block);
  if (LIKELY(written == block)) return;
  struct block_description description =
      named_describe(block, entry, range_requested_bytes(granule_of(block)));
  report_write_beside(block, written, &description);
}

/* From here on a mapping of its own costs less than a guard mark for each page, though it divides
 * the mapping around it. */
#define CLOSED_BY_MAPPING_BYTES ((size_t)1 << 20)

/* A guarded block may have no pages, and all others of its range are closed. */
static bool close_range(size_t granule, uintptr_t open, uintptr_t open_end) {
  void *begin = (void *)granule_address(granule);
  size_t bytes = (size_t)range_info(granule)->granules << GRANULE_SHIFT;
  if (range_info(granule)->is_guarded)
    return open == open_end || os_close_pages((void *)open, open_end - open);
  if (bytes >= CLOSED_BY_MAPPING_BYTES && os_close_by_mapping(begin, bytes)) {
    range_note_moved(granule);
    return true;
  }
  return os_close_pages(begin, bytes);
}

/* Closes the range, or else wipes its open pages; then it waits. */
static void bury(struct heap *heap, size_t granule, uintptr_t open, uintptr_t open_end) {
  struct range_info *info = range_info(granule);
  info->is_closed = close_range(granule, open, open_end);
  if (UNLIKELY(!info->is_closed) && open < open_end) memset((void *)open, 0, open_end - open);
  if (info->is_guarded)
    give_guarded(granule);
  else if (heap)
    quarantine_add_range(heap, granule);
  else
    range_give_empty(granule, heap_counters(heap));
}

bool checked_range_end(struct heap *heap, uintptr_t block, const char *verb) {
  size_t granule = granule_of(block);
  bool was_live = big_note_freed(granule, heap_counters(heap));
  if (UNLIKELY(!was_live))
    pointer_fail(verb, block); /* another thread freed it first */
  else if (range_info(granule)->is_guarded)
    guarded_note_free(granule);
  return was_live;
}

void checked_range_free(struct heap *heap, uintptr_t block, uint32_t entry) {
  size_t granule = granule_of(block);
  check_front(block, entry);
  bury(heap, granule, first_page(block), range_end_of_block(granule));
}

/* ---- realloc --------------------------------------------------------------------------------- */

/* The pages after the block are closed, so that one call opens those that it grows by. Pages of
 * free neighbours are mostly closed as well. */
static bool grow(size_t granule, size_t granules, uintptr_t end, struct counters *counters) {
  struct range_info *info = range_info(granule);
  size_t before = info->granules;
  uintptr_t end_before = range_end_of_block(granule);
  info->is_closed = true; /* until a neighbour is not */
  bool is_extended = granules == before || range_extend(granule, granules, counters);
  bool are_closed = info->is_closed, is_open = false;
  info->is_closed = false;
  if (!is_extended) return false;
  is_open = os_open_pages((void *)end_before, end - end_before);
  if (!is_open)
    range_shrink(granule, before, counters); /* where it was cut before: no records are missing */
  set_end_of_block(granule, is_open ? end : end_before);
  if (!is_open) return false;
  if (!are_closed) os_close_pages((void *)end, end_of_range(granule) - end);
  range_note_begin(granule, granule + before - 1);
  return true;
}

/* Granules that are cut off wait as if they had been freed. */
static bool shrink(struct heap *heap, size_t granule, size_t granules, uintptr_t end) {
  size_t before = range_info(granule)->granules;
  uintptr_t end_before = range_end_of_block(granule), rest = granule_address(granule + granules);
  if (granules < before && !range_cut(granule, granules, heap_counters(heap))) return false;
  uintptr_t closed_to = end_before < rest ? end_before : rest;
  if (end != closed_to && !os_close_pages((void *)end, closed_to - end))
    memset((void *)end, 0, closed_to - end);
  set_end_of_block(granule, end);
  if (granules < before) bury(heap, granule + granules, rest, end_before);
  return true;
}

bool checked_range_resize(struct heap *heap, uintptr_t block, size_t size) {
  size_t granule = granule_of(block), before = range_info(granule)->granules;
  uintptr_t end = end_for(block, size), end_before = range_end_of_block(granule);
  size_t bytes = end + os_page_bytes() - granule_address(granule);
  size_t granules = (bytes + GRANULE_BYTES - 1) >> GRANULE_SHIFT;
  bool is_resized = end > end_before ? grow(granule, granules, end, heap_counters(heap))
                                     : shrink(heap, granule, granules, end);
  if (!is_resized) return false;
  big_count((int64_t)size_of_granules(granules) - (int64_t)size_of_granules(before), 0);
  checked_range_write_end(block, size, range_info(granule)->maker);
  return true;
}

/* Whole pages move, so the block begins in its page where the source does: that may be in the page
 * before the target's first. */
uintptr_t checked_range_move(uintptr_t *target, uintptr_t source, size_t bytes,
                             struct counters *counters) {
  uintptr_t first = first_page(*target), block = *target - (*target - source) % os_page_bytes();
  size_t size = range_requested_bytes(granule_of(*target));
  size_t source_size = range_requested_bytes(granule_of(source));
  if (block < granule_address(granule_of(*target))) return 0;
  if (block < first && !os_open_pages((void *)first_page(block), first - first_page(block)))
    return 0;
  if (!big_move_pages(target, block, source, bytes, counters)) {
    if (*target && block < first) os_close_pages((void *)first_page(block), os_page_bytes());
    return 0;
  }
  uintptr_t end = round_up(block + bytes, os_page_bytes());
  memset((void *)(block + bytes), 0, end - (block + bytes)); /* the source's slack */
  write_ends(block, size, MADE_BY_MALLOC);
  write_ends(source, source_size, MADE_BY_MALLOC);
  return block;
}
