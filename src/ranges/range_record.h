/* range_record.h: the records of ranges: for the files of pool/ that change them, and for
 * src/observe.
 *
 * A chunk inside a range has no records until a range begins or ends in it: a huge block's records
 * do not grow with it.
 *
 *   law: the records of a range's first and last granule tell its kind, that of the first its
 *   length and, for a free
 *        one, where it lies in its set (arena.h); records in between, where there are any, are
 *        without meaning */
#ifndef HAK_RANGES_RANGE_RECORD_H
#define HAK_RANGES_RANGE_RECORD_H

#include "map/window.h"
#include "pool/superslab.h"

#define NO_GRANULE SIZE_MAX

/* Facts about a live range; kept in the record of its first granule. */
struct range_info {
  SHOWN(uint32_t, granules); /* in a free range too */
  union {
    ATOMIC(uint32_t) site; /* the call site of the request */
    uint32_t purged;       /* in a free range, not DIRTY: granules that went back, not used since */
  };
  uint32_t stamp_ms;     /* last time it was freed */
  uint16_t colour_bytes; /* where its block begins, from the first granule's start */
  bool is_zero;          /* reads as zero: clearing is not needed */
  uint8_t uncounted;     /* range_uncounted_bytes, in units of COLOUR_ROOM_BYTES */
  uint8_t end;          /* of its block, in END_STEP_BYTES of the last granule (ranges/density.h) */
  uint8_t closed_pages; /* of a closed range: those after its block's last one, one at least */
  uint16_t slack_bytes; /* of a closed range: after the requested ones, in the block's pages */
  uint8_t maker;        /* of a closed range: enum maker */
  bool is_closed;       /* all its pages are closed; false: some may be open */
  bool is_guarded;      /* for guarded blocks alone (guard/guarded.h) */
  bool is_sampled;      /* its block may be in the table of samples (profile/samples.h) */
};

enum range_kind {
  RANGE_NONE,
  RANGE_LIVE,
  RANGE_DIRTY,
  RANGE_CLEAN,
  RANGE_UNMAPPED,
  RANGE_OCCUPIED,
  RANGE_BUSY /* in no set: a thread is giving it to the system */
};

struct range {
  struct range_info info;
  SHOWN(uint32_t, first);  /* in the last granule's record: the first granule */
  uint32_t next, previous; /* neighbours in the bin, or of a named heap, by first granule */
  uint32_t older, younger; /* neighbours by age */
  uint8_t kind;            /* enum range_kind */
  bool was_moved;          /* its mapping is a fragment, or marked: remap instead of purge */
};

struct range_chunk {
  uint8_t arena; /* the arena whose lock guards the fields below; changes in a forked child only */
  ATOMIC(char) huge_state; /* LET_IN: a range covers it wholly, or it was never used (map/huge.h) */
  struct range ranges[GRANULES_PER_CHUNK];
};

/* NULL when the granule's chunk does not exist or is not a range chunk. */
INLINE struct range_chunk *range_chunk_if_any(size_t granule) {
  if (granule >= load_relaxed(&window.granule_count)) return NULL;
  uintptr_t metadata = (uintptr_t)chunk_metadata(granule / GRANULES_PER_CHUNK);
  if (!(metadata & CHUNK_IS_RANGES)) return NULL;
  return (struct range_chunk *)(metadata & ~CHUNK_IS_RANGES); /* NOLINT: a tagged pointer */
}
INLINE struct range *range_record_if_any(size_t granule) {
  struct range_chunk *chunk = range_chunk_if_any(granule);
  return chunk ? &chunk->ranges[granule % GRANULES_PER_CHUNK] : NULL;
}
/* For a granule of a range chunk. */
INLINE struct range_chunk *range_chunk(size_t granule) {
  ASSERT(range_chunk_if_any(granule));
  char *tagged = chunk_metadata(granule / GRANULES_PER_CHUNK);
  return (struct range_chunk *)(void *)(tagged - CHUNK_IS_RANGES);
}
INLINE struct range *range_record(size_t granule) {
  return &range_chunk(granule)->ranges[granule % GRANULES_PER_CHUNK];
}

/* A list of ranges: its first one's first granule, or NO_RANGE. */
enum { NO_RANGE = 0 }; /* the first chunk is of records */
INLINE void range_link(uint32_t *list, struct range *range, uint32_t first) {
  range->previous = NO_RANGE;
  range->next = *list;
  if (*list != NO_RANGE) range_record(*list)->previous = first;
  *list = first;
}
INLINE void range_unlink(uint32_t *list, const struct range *range) {
  if (range->next != NO_RANGE) range_record(range->next)->previous = range->previous;
  *(range->previous == NO_RANGE ? list : &range_record(range->previous)->next) = range->next;
}

/* The first granule of the next chunk. */
INLINE size_t next_chunk(size_t granule) {
  return (granule / GRANULES_PER_CHUNK + 1) * GRANULES_PER_CHUNK;
}

/* Writes the boundary records of a range. */
INLINE void range_set_boundaries(size_t first, size_t granules, enum range_kind kind) {
  struct range *head = range_record(first), *tail = range_record(first + granules - 1);
  show(&head->info, granules, (uint32_t)granules);
  show(tail, first, (uint32_t)first);
  head->kind = tail->kind = (uint8_t)kind;
}

/* ---- where a range may be cut in two: between chunks that have records
 * -------------------------------------------------
 *
 * Fresh chunks that one request fills get records at their ends only; the others when a range is
 * cut there for the first time. Memory for records may be refused, and is allocated without a lock:
 * so a free range is cut with its arena's spare records, and a thread that lacks some brings them
 * and begins anew. */

/* Records for a chunk, NULL when memory is refused; they are the chunk's from now on. */
struct range_chunk *range_make_records(void);
void range_publish_records(size_t chunk, struct range_chunk *records, unsigned arena,
                           char huge_state);
/* Gives a chunk without records records of this arena; false when memory is refused. */
bool range_add_records(size_t chunk, unsigned arena, char huge_state);

/* Whether the range that begins at `whole` may be cut in front of `at`; true too where it begins,
 * or ends. */
INLINE bool range_may_cut(size_t whole, size_t at) {
  if (at == whole || at - whole == range_record(whole)->info.granules) return true;
  return chunk_metadata((at - 1) / GRANULES_PER_CHUNK) && chunk_metadata(at / GRANULES_PER_CHUNK);
}

/* Adds the missing records to a range that is in no set, and the caller's alone; false when memory
 * is refused. */
bool range_prepare_cut(size_t whole, size_t at);

/* ---- marks of the program (range_marks.c) ---------------------------------------- */

/* From 1 MiB on, a range that is free again is asked about. */
enum { RANGE_MARKED_MIN_GRANULES = 16 };
/* Whether the kernel may treat the live range that begins at `first` in another way than fresh
 * memory. */
bool range_mapping_is_marked(size_t first);
INLINE bool range_is_marked(size_t first) {
  return UNLIKELY(range_record(first)->info.granules >= RANGE_MARKED_MIN_GRANULES) &&
         range_mapping_is_marked(first);
}

/* ---- huge pages of ranges (map/huge.h) -------------------------------------------- */

/* The range will be used, or given back, apart from its neighbours in the chunks at its ends. */
void range_refuse_huge_at_ends(size_t first, size_t granules);
/* Memory mapped anew has no huge pages, and belongs to no chunk that has. */
void range_keep_huge_out(size_t first, size_t granules);

#endif
