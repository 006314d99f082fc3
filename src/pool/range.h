/* range.h: ranges of granules for Large and Big blocks: split, merged, reused before fresh ones.
 *
 * Range chunks are cut into ranges; each is live or free, and free ones are kept in sets by what
 * their pages hold:
 *
 *      DIRTY     freed lately, pages resident, content arbitrary     taken first
 *      CLEAN     never touched or purged: reads as zero              taken next
 *      UNMAPPED  address space only                                  mapped again when taken
 *      OCCUPIED  UNMAPPED, and others have mapped something there    UNMAPPED again after a while
 *
 * Free neighbours of one kind merge.  A set is an array of bins by size with a bitmap of the
 * non-empty ones (in the manner of TLSF, M. Masmano et al., 2004): good fit in a bounded number of
 * steps.  Several arenas, each with its own lock, serve different heaps; a lock is never held across
 * a system call.
 *
 *   law: every granule of a mapped range chunk belongs to exactly one range, and the records of a
 *        range's first and last granule tell its kind; free neighbours of one arena differ in kind. */
#ifndef HAK_POOL_RANGE_H
#define HAK_POOL_RANGE_H

#include "base/counters.h"
#include "config/limits.h"
#include "map/window.h"
#include "pool/purge.h"

#define NO_GRANULE SIZE_MAX

/* What a live range tells about itself; kept in the record of its first granule. */
struct range_info {
  uint32_t granules;
  ATOMIC(uint32_t) site; /* who asked for it (O4); in a stack of ranges the next one */
  uint32_t stamp_ms;     /* last time it was freed into a cache */
  uint16_t colour_bytes; /* where its block begins, behind the first granule's begin */
  bool is_zero;          /* reads as zero: no need to clear */
  bool is_closed;        /* hardened mode: all its pages are; false: some may be */
  uint8_t uncounted;     /* range_uncounted_bytes, in units of COLOUR_ROOM_BYTES */
};

/* Where memory for a block may come from. */
enum range_source {
  FROM_ANY,   /* the system, too */
  FROM_FREED, /* what was freed */
  FROM_ROOMY, /* a freed range in front of half as many free granules: who grows may find them free still */
};
struct range_request {
  size_t granules, alignment_granules; /* the latter a power of two */
  unsigned home;                       /* chooses the arena to look in first */
  enum range_source source;
};
INLINE size_t alignment_granules(size_t alignment_bytes) {
  return alignment_bytes > GRANULE_BYTES ? alignment_bytes >> GRANULE_SHIFT : 1;
}

/* A live range whose address is a multiple of the alignment, or NO_GRANULE.  `used` memory has been freed
 * lately, its content is arbitrary; `fresh` reads as zero, and comes from the operating system in the end:
 * taken when there is nothing to reuse. */
size_t range_take_used(const struct range_request *request, struct counters *counters);
size_t range_take_fresh(const struct range_request *request, struct counters *counters);
INLINE size_t range_take(const struct range_request *request, struct counters *counters) {
  size_t granule = range_take_used(request, counters);
  if (granule != NO_GRANULE || request->source != FROM_ANY) return granule;
  return range_take_fresh(request, counters);
}

/* ---- what a hard limit does not count ----
 *
 * A range is whole granules; what was asked for may end up to 60 KiB before.  Where a hard limit is set, the pages
 * behind are not the program's (malloc_usable_size says so), have no memory, and are not counted as held: from when a
 * range is taken for a block until the block grows into them or the range is free for others. */

INLINE size_t range_uncounted_bytes(const struct range_info *info) {
  return (size_t)info->uncounted * COLOUR_ROOM_BYTES;
}
/* A live or cached range is for a block of `bytes` from now on; false when the limit forbids it. */
bool range_count_within_limit(size_t granule, size_t bytes);
INLINE bool range_count_for(size_t granule, size_t bytes) {
  return LIKELY(!limits.hard_bytes) || range_count_within_limit(granule, bytes);
}
/* Counts it whole, without asking. */
void range_count_whole(size_t granule);

/* Frees a live range: DIRTY from now on, and as old as `stamp_ms` says. */
void range_give(size_t granule, uint32_t stamp_ms, struct counters *counters);
/* The same for one of which the system has left some pages unmapped (OS_LOST): its addresses alone come back,
 * or, when it refuses that too, nothing. */
void range_give_lost(size_t granule, struct counters *counters);

/* The same in hardened mode, of one that reads as zero: closed, if the system did not refuse.  CLEAN from now on. */
void range_give_empty(size_t granule, struct counters *counters);

/* Of the live range that begins at `granule`. */
struct range_info *range_info(size_t granule);
/* Where its block begins; whether the block of the live range at this address does so here. */
uintptr_t range_block(size_t granule);
INLINE bool range_block_begins_at(uintptr_t address) {
  return range_block(granule_of(address)) == address;
}

/* Grows a live range in place, into its right neighbour; false when that is not free. */
bool range_extend(size_t granule, size_t new_granules, struct counters *counters);
/* Cuts a live range; the rest becomes DIRTY. */
void range_shrink(size_t granule, size_t new_granules, struct counters *counters);
/* Notes that the range's pages were moved in from elsewhere, which leaves a mapping of its own. */
void range_note_moved(size_t granule);

/* Is there a live or cached range that covers this granule?  Its first granule, or NO_GRANULE.
 * Slow; for diagnosis.  The second form looks at `granules_max` granules before it at most; beyond: NO_GRANULE. */
size_t range_covering(size_t granule);
size_t range_covering_near(size_t granule, size_t granules_max);
/* Notes in all of a live range's records where it begins: then both find it at once from anywhere inside.  What is noted
 * is a hint, true only as long as the range lives. */
void range_note_begin(size_t granule);

/* Bytes by which DIRTY ranges exceed their budget, option big_cache_bytes. */
uint64_t range_excess_bytes(void);

/* Gives DIRTY ranges back that are old enough; with purge->give_addresses unmaps all free ones. */
void range_purge(struct purge *purge, struct counters *counters);

struct range_sizes {
  uint64_t mapped_bytes, dirty_bytes, clean_bytes;
};
void range_measure(struct range_sizes *sizes);

/* DIRTY ranges, one by one. */
struct range_free {
  uint64_t ranges, bytes, smallest_bytes, largest_bytes;
};
void range_look_at_dirty(struct range_free *found, struct counters *counters);

/* In a forked child, before anything else: an arena whose lists a thread was changing that did not come along is set aside.
 * Its live ranges stay usable, and give their pages back when they are freed; its free ones are lost to the child. */
void range_after_fork(void);

#endif
