/* range.h: ranges of granules for Large and Big blocks: split, merged, reused before fresh ones.
 *
 * Range chunks are cut into ranges; each is live or free, and free ones are kept in sets by the
 * content of their pages:
 *
 *      DIRTY     freed lately, pages resident, content arbitrary     taken first
 *      CLEAN     never touched or purged: reads as zero              taken next
 *      UNMAPPED  address space only                                  mapped again when taken
 *      OCCUPIED  UNMAPPED, and others have mapped something there    UNMAPPED again after a while
 *
 * Free neighbours of one kind merge.  Several arenas, each with its own lock, serve different heaps
 * (arena.h); a lock is never held across a system call.
 *
 *   law: every granule of a mapped range chunk belongs to exactly one range (range_record.h);
 *   free neighbours of one
 *        arena differ in kind */
#ifndef HAK_RANGES_RANGE_H
#define HAK_RANGES_RANGE_H

#include "config/limits.h"
#include "ranges/range_purge.h"

/* The headroom of a block that may grow: room for the step that programs mostly grow by. */
enum { HEADROOM_DIVISOR = 2 };
INLINE size_t alignment_granules(size_t alignment_bytes) {
  return alignment_bytes > GRANULE_BYTES ? alignment_bytes >> GRANULE_SHIFT : 1;
}

/* A live range whose address is a multiple of the alignment, or NO_GRANULE. `used` memory has been
 * freed lately, its content is arbitrary; `fresh` reads as zero and may come from the operating
 * system: taken when there is nothing to reuse. */
size_t range_take_used(const struct range_request *request, struct counters *counters);
size_t range_take_fresh(const struct range_request *request, struct counters *counters);
INLINE size_t range_take(const struct range_request *request, struct counters *counters) {
  size_t granule = range_take_used(request, counters);
  return granule != NO_GRANULE ? granule : range_take_fresh(request, counters);
}

/* Frees a live range: DIRTY from now on, of age `stamp_ms`. */
void range_give(size_t granule, uint32_t stamp_ms, struct counters *counters);
/* Frees a range of which the system has left some pages unmapped (OS_LOST): its addresses come
 * back, or nothing, if that is refused. */
void range_give_lost(size_t granule, struct counters *counters);

/* Frees a range in hardened mode that reads as zero: closed, unless refused. CLEAN from now on;
 * UNMAPPED in a mapping of its own. */
void range_give_empty(size_t granule, struct counters *counters);

/* For the live range that begins at `granule`. */
INLINE struct range_info *range_info(size_t granule) { return &range_record(granule)->info; }
/* The start of its block; whether the block of the live range at this address begins here. */
INLINE uintptr_t range_block(size_t granule) {
  return granule_address(granule) + range_info(granule)->colour_bytes;
}
INLINE bool range_block_begins_at(uintptr_t address) {
  return range_block(granule_of(address)) == address;
}
/* A closed range's block: where its last page ends, the bytes of its pages, the requested bytes. */
INLINE uintptr_t range_end_of_block(size_t granule) {
  const struct range_info *info = range_info(granule);
  return granule_address(granule + info->granules) - info->closed_pages * os_page_bytes();
}
INLINE size_t range_open_bytes(size_t granule) {
  return range_end_of_block(granule) - round_down(range_block(granule), os_page_bytes());
}
INLINE size_t range_requested_bytes(size_t granule) {
  return range_end_of_block(granule) - range_info(granule)->slack_bytes - range_block(granule);
}

/* Grows a live range in place, into its right neighbour; false when that is not free. */
bool range_extend(size_t granule, size_t new_granules, struct counters *counters);
/* Cuts a live range; the rest becomes DIRTY.  False without memory for the rest's records: nothing
 * changed. */
bool range_shrink(size_t granule, size_t new_granules, struct counters *counters);
/* Cuts a live range; the rest stays live as a range of its own. */
bool range_cut(size_t granule, size_t new_granules, struct counters *counters);
/* Notes that the range's pages were moved in from elsewhere, which leaves a mapping of its own. */
void range_note_moved(size_t granule);

/* ---- memory that a hard limit does not count
 * ---------------------------------------------------------------------------
 *
 * A range is whole granules; the request may end up to 60 KiB before. Where a hard limit is set,
 * the pages after it do not belong to the program (malloc_usable_size excludes them), have no
 * memory, and do not count as held: from when a range is taken for a block until the block grows
 * into them or the range is free for others. */

INLINE size_t range_uncounted_bytes(const struct range_info *info) {
  return (size_t)info->uncounted * COLOUR_ROOM_BYTES;
}
/* Sets the uncounted bytes; the caller settles the committed bytes. */
void range_set_uncounted(struct range_info *info, size_t bytes);

/* A live or cached range is for a block of `bytes` from now on; false when the limit forbids it. */
bool range_count_within_limit(size_t granule, size_t bytes);
INLINE bool range_count_for(size_t granule, size_t bytes) {
  return LIKELY(!limits.hard_bytes) || range_count_within_limit(granule, bytes);
}
/* Counts it in full, without asking. */
void range_count_whole(size_t granule);

/* ---- the existing ranges, for diagnosis and reports: slow ------------------------------------ */

/* The first granule of the live or cached range that covers this granule, or NO_GRANULE. Looks back
 * `steps_max` granules at most, or chunks without records; beyond: NO_GRANULE. */
size_t range_covering(size_t granule, size_t steps_max);
/* Hardened mode: notes in a live range's records where it begins, from granule `from` on, so that
 * it is found soon from anywhere inside. The note is a hint, true only while the range lives. */
void range_note_begin(size_t granule, size_t from);

struct range_sizes {
  uint64_t mapped_bytes, dirty_bytes, clean_bytes;
};
void range_measure(struct range_sizes *sizes);

/* The number of DIRTY ranges, counted one by one. */
uint64_t range_count_dirty(struct counters *counters);

#endif
