/* arena.h: the free ranges of an arena, each kind in a set: found by size, by age and by neighbour.
 *
 *   set    bins by size, with a bitmap of the non-empty ones (in the manner of TLSF, M. Masmano
 *          et al., 2004), and one list by age, oldest to youngest
 *
 * Free neighbours of one kind merge and get the age of the larger one, so that small frees beside
 * it do not keep a big old range young. An arena's lock guards its sets and the records of its
 * chunks; it is never held across a system call.
 *
 *   law: a set's ranges are those that its bins hold, each in the bin of its size, and those of
 *   its list, which is in
 *        the order of their stamps; `granules` is their sum, and a bin's bit tells whether it is
 *        empty */
#ifndef HAK_RANGES_ARENA_H
#define HAK_RANGES_ARENA_H

#include <limits.h>

#include "os/lock.h"
#include "ranges/range_record.h"

enum { FREE_KIND_FIRST = RANGE_DIRTY, FREE_KIND_COUNT = 4 };
enum { ARENA_COUNT = 4 };
/* The arena number of chunks without an arena: in a forked child, if a thread was changing their
 * arena's lists. */
enum { ARENA_SET_ASIDE = ARENA_COUNT };

/* Bins: exact up to 32 granules (2 MiB), then eight per doubling. */
enum { EXACT_BINS = 32, BINS_PER_DOUBLING = 8, BIN_COUNT = 192, BIN_WORDS = BIN_COUNT / 64 };

/* A cut needs four at most; the array holds those that several threads may bring at once. */
enum { SPARES_MAX = 8 };

struct range_set {
  uint64_t nonempty[BIN_WORDS];
  uint32_t bins[BIN_COUNT];
  uint32_t oldest, youngest;
  ATOMIC(uint64_t) granules; /* of all its ranges; read without the lock as a hint */
};

struct arena {
  CACHE_ALIGNED struct lock lock;
  bool is_held;              /* in debug builds, as the lock says */
  ATOMIC(uint64_t) granules; /* mapped or unmapped, live or free */
  struct range_set sets[FREE_KIND_COUNT];
  struct range_chunk *spares[SPARES_MAX]; /* records for cuts */
  unsigned spare_count;
};
extern struct arena arenas[ARENA_COUNT];
extern ATOMIC(uint32_t) arenas_in_use; /* a bit for each that ever got chunks */

/* Else it is all zero: a small process touches one arena's pages. */
INLINE bool arena_is_in_use(const struct arena *arena) {
  return load_relaxed(&arenas_in_use) >> (arena - arenas) & 1;
}

/* The arena of a granule's chunk; NULL when it was set aside. */
struct arena *arena_of(size_t granule);
void arena_lock(struct arena *arena, struct counters *counters);
void arena_unlock(struct arena *arena);

INLINE struct range_set *set_of(struct arena *arena, enum range_kind kind) {
  return &arena->sets[kind - FREE_KIND_FIRST];
}
/* Without the lock: a hint, as old as the load. A range being cut or merged counts as before or as
 * afterwards, so a free range is not overlooked for it; a range that a thread is giving to the
 * system is in no set. */
INLINE uint64_t arena_granules_of(struct arena *arena, enum range_kind kind) {
  return arena_is_in_use(arena) ? load_relaxed(&set_of(arena, kind)->granules) : 0;
}
/* Summed over all arenas. */
uint64_t arenas_bytes_of(enum range_kind kind);
/* Bytes in chunks whose arena was set aside. */
uint64_t arenas_bytes_set_aside(void);

/* ---- with the lock --------------------------------------------------------------------------- */

/* Fresh chunks are the arena's from now on, as one CLEAN range. */
void arena_add_chunks(struct arena *arena, size_t first_chunk, size_t chunk_count, bool is_closed);

/* A range that is in no set becomes free, merged with its free neighbours of the same kind. */
void arena_insert(struct arena *arena, size_t first, size_t granules, enum range_kind kind);
/* Takes a free range out of its set; it is BUSY (its neighbours do not merge with it) until it is
 * set otherwise. */
void arena_extract(struct arena *arena, size_t first);
/* Makes [first, first + granules), a part of the free range that begins at `whole`, LIVE; the rest
 * of it is free as before. */
void arena_cut(struct arena *arena, size_t whole, size_t first, size_t granules);

struct range_request {
  size_t granules, alignment_granules; /* the latter a power of two */
  unsigned home;                       /* chooses the arena to look in first */
  size_t headroom;                     /* granules that should follow and stay free */
};
/* The tightest fit of a kind, LIVE now, or NO_GRANULE.  The lock may be given and taken again. */
size_t arena_take(struct arena *arena, enum range_kind kind, const struct range_request *request,
                  struct counters *counters);

/* Makes it possible to cut the free range at `whole` in front of `first` and `end`, or fetches the
 * needed records: then the lock was given and taken again, the state seen under it may have
 * changed, and the caller begins anew. The range stays in its set for other threads. False when
 * memory is refused. */
bool arena_prepare_cut(struct arena *arena, size_t whole, size_t first, size_t end,
                       struct counters *counters);

/* The free range of one of these kinds that begins at `granule`, or NULL. */
struct range *arena_free_at(const struct arena *arena, size_t granule, enum range_kind kind,
                            enum range_kind or_kind);

unsigned bin_of(size_t granules);

/* ---- over all arenas ------------------------------------------------------------------------- */

/* Looks through every arena, the home one first, for a free range of this kind; LIVE then, or
 * NO_GRANULE. */
size_t range_take_kind(enum range_kind kind, const struct range_request *request,
                       struct counters *counters);
/* A CLEAN range, LIVE now, or NO_GRANULE: of pages unused since the system gave them, addresses
 * mapped again, or new chunks. */
size_t range_take_clean(const struct range_request *request, struct counters *counters);

/* For a live range that ends at `end`, where only free ranges follow up to the window's frontier:
 * adds chunks, so that `wanted` free granules follow, unless another thread takes those addresses.
 * False when something else follows, or memory is refused. */
bool range_add_behind(size_t end, size_t wanted, struct counters *counters);

/* ---- laws ------------------------------------------------------------------------------------ */

/* Checks `ranges_max` ranges of each set at most; the bins and sums too if every one. */
#define EVERY_RANGE UINT_MAX
bool arena_is_valid(struct arena *arena, unsigned ranges_max);
/* For the range that begins at `first`, live or free; with its arena's lock. */
bool range_is_valid(size_t first);

/* In a forked child, before anything else: sets aside an arena whose lists were being changed by a
 * thread that does not exist there. Its live ranges stay usable, and give their pages back when
 * they are freed; its free ones are lost to the child. */
void arenas_after_fork(void);

#endif
