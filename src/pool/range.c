/* range.c: see range.h.
 *
 *   range_take ── take_from_set ── find_in_set, cut
 *              ── grow_arena
 *   range_give ── insert_merged
 *   range_purge ── collect_due, give_back */
#include "pool/range.h"

#include "config/limits.h"
#include "config/options.h"
#include "map/commit.h"
#include "map/huge.h"
#include "map/metadata.h"
#include "os/lock.h"
#include "os/os.h"
#include "pool/purge_credit.h"
#include "pool/range_record.h"
#include "pool/superslab.h"

enum { FREE_KIND_FIRST = RANGE_DIRTY, FREE_KIND_COUNT = 4 };

/* Bins: exact up to 32 granules (2 MiB), then eight per doubling. */
enum { EXACT_BINS = 32, BINS_PER_DOUBLING = 8, BIN_COUNT = 192, BIN_WORDS = BIN_COUNT / 64 };
/* Ranges looked at in the bin of the wanted size itself, where not every one fits. */
enum { FIT_PROBES = 16 };
enum { ARENA_COUNT = 4, PURGE_BATCH = 32 };
/* The arena of chunks that are in none: in a forked child, if a thread was changing their arena's lists. */
enum { ARENA_SET_ASIDE = ARENA_COUNT };

#define NO_RANGE UINT32_MAX
/* A fresh piece for an arena is at least an eighth of what it has: few, growing system calls. */
enum { GROWTH_DIVISOR = 8, GROWTH_MAX_CHUNKS = 32 };

struct range_set {
  uint64_t nonempty[BIN_WORDS];
  uint32_t bins[BIN_COUNT];
  ATOMIC(uint64_t) granules; /* of all its ranges; read without the lock as a hint */
};

struct arena {
  CACHE_ALIGNED struct lock lock;
  bool is_ready;             /* bins are initialised */
  ATOMIC(uint64_t) granules; /* mapped or unmapped, live or free */
  struct range_set sets[FREE_KIND_COUNT];
};

static struct arena arenas[ARENA_COUNT]; /* all zero, the locks' rank too */
static ATOMIC(uint64_t) granules_set_aside;

/* ---- records ------------------------------------------------------------------------------------- */

/* NULL when the granule's chunk is not a range chunk (or there is none). */
RESIDENT static struct range_chunk *chunk_if_any(size_t granule) {
  if (granule >= load_relaxed(&window.granule_count)) return NULL;
  uintptr_t metadata = (uintptr_t)chunk_metadata(granule / GRANULES_PER_CHUNK);
  if (!(metadata & CHUNK_IS_RANGES)) return NULL;
  return (struct range_chunk *)(metadata & ~CHUNK_IS_RANGES); /* NOLINT: a tagged pointer */
}

static struct range *record(size_t granule) {
  struct range_chunk *chunk = chunk_if_any(granule);
  ASSERT(chunk);
  return &chunk->ranges[granule % GRANULES_PER_CHUNK];
}

static struct range *record_if_any(size_t granule) {
  struct range_chunk *chunk = chunk_if_any(granule);
  return chunk ? &chunk->ranges[granule % GRANULES_PER_CHUNK] : NULL;
}

/* NULL when it was set aside. */
static struct arena *arena_of(size_t granule) {
  unsigned arena = chunk_if_any(granule)->arena;
  return arena < ARENA_COUNT ? &arenas[arena] : NULL;
}

RESIDENT struct range_info *range_info(size_t granule) { return &record(granule)->info; }

RESIDENT uintptr_t range_block(size_t granule) {
  return granule_address(granule) + range_info(granule)->colour_bytes;
}

/* Writes the boundary records of a range. */
static void set_boundaries(size_t first, size_t granules, enum range_kind kind) {
  struct range *head = record(first), *tail = record(first + granules - 1);
  head->info.granules = (uint32_t)granules;
  tail->first = (uint32_t)first;
  head->kind = tail->kind = (uint8_t)kind;
}

/* The `count` granules from `first` on as a mask of their chunk's, as far as they lie in it. */
static uint32_t chunk_mask(size_t first, size_t count) {
  size_t room = GRANULES_PER_CHUNK - first % GRANULES_PER_CHUNK;
  return (uint32_t)(low_bits((unsigned)(count < room ? count : room))
                    << first % GRANULES_PER_CHUNK);
}

/* The first granule of the next chunk. */
static size_t next_chunk(size_t granule) {
  return (granule / GRANULES_PER_CHUNK + 1) * GRANULES_PER_CHUNK;
}

static void note_purge(size_t first, size_t granules) {
  for (size_t at = first, end = first + granules; at < end; at = next_chunk(at))
    chunk_if_any(at)->purged |= chunk_mask(at, end - at);
}

/* Granules that are used: those that were given back once cost their page faults again. */
static void note_refaults(size_t first, size_t granules) {
  unsigned again = 0;
  for (size_t at = first, end = first + granules; at < end; at = next_chunk(at)) {
    struct range_chunk *chunk = chunk_if_any(at);
    uint32_t mask = chunk_mask(at, end - at);
    again += count_bits(chunk->purged & mask);
    chunk->purged &= ~mask;
  }
  if (again) fetch_add_relaxed(&totals.refaulted_bytes, again * GRANULE_BYTES);
}

static void refuse_huge(size_t granule) {
  struct range_chunk *chunk = chunk_if_any(granule);
  if (load_relaxed(&chunk->may_be_huge))
    huge_refuse(granule / GRANULES_PER_CHUNK, &chunk->may_be_huge);
}

/* The range is going to be used, or given back, apart from what lies beside it in the chunks at its ends. */
static void refuse_huge_at_ends(size_t first, size_t granules) {
  size_t end = first + granules;
  if (LIKELY(!huge.is_always && !options.thp)) return;
  if (first % GRANULES_PER_CHUNK) refuse_huge(first);
  if (end % GRANULES_PER_CHUNK) refuse_huge(end - 1);
}

/* A range of fresh pages, at its end at least; who asked for huge pages (HAKMEM_THP) has them there too. */
static void settle_fresh(size_t first, size_t granules) {
  if (UNLIKELY(huge.is_always) && !options.thp) refuse_huge_at_ends(first, granules);
}

/* ---- sets ----------------------------------------------------------------------------------------- */

static unsigned bin_of(size_t granules) {
  if (granules <= EXACT_BINS) return (unsigned)granules - 1;
  unsigned top = highest_bit(granules);
  unsigned bin = EXACT_BINS + (top - 5) * BINS_PER_DOUBLING + ((granules >> (top - 3)) & 7);
  return bin < BIN_COUNT ? bin : BIN_COUNT - 1;
}

static struct range_set *set_of(struct arena *arena, enum range_kind kind) {
  return &arena->sets[kind - FREE_KIND_FIRST];
}

static uint64_t bytes_of_kind(enum range_kind kind) {
  uint64_t granules = 0;
  for (unsigned arena = 0; arena < ARENA_COUNT; arena++)
    granules += load_relaxed(&set_of(&arenas[arena], kind)->granules);
  return granules << GRANULE_SHIFT;
}

RESIDENT static void insert(struct arena *arena, size_t first, size_t granules,
                            enum range_kind kind) {
  struct range_set *set = set_of(arena, kind);
  unsigned bin = bin_of(granules);
  set_boundaries(first, granules, kind);
  struct range *head = record(first);
  head->previous = NO_RANGE;
  head->next = set->bins[bin];
  if (head->next != NO_RANGE) record(head->next)->previous = (uint32_t)first;
  set->bins[bin] = (uint32_t)first;
  set->nonempty[bin / 64] |= UINT64_C(1) << bin % 64;
  add_single_writer(&set->granules, granules); /* under the lock */
}

/* Takes a free range out of its set; it is BUSY (nobody merges with it) until it is set otherwise. */
RESIDENT static void extract(struct arena *arena, size_t first) {
  struct range *head = record(first);
  struct range_set *set = set_of(arena, head->kind);
  unsigned bin = bin_of(head->info.granules);
  if (head->next != NO_RANGE) record(head->next)->previous = head->previous;
  if (head->previous != NO_RANGE) {
    record(head->previous)->next = head->next;
  } else {
    set->bins[bin] = head->next;
    if (head->next == NO_RANGE) set->nonempty[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  }
  add_single_writer(&set->granules, (uint64_t)0 - head->info.granules);
  set_boundaries(first, head->info.granules, RANGE_BUSY);
}

/* The record of a granule beside a range of this arena, NULL when it is not of this arena: another
 * one's records are not even looked at, as we do not hold its lock. */
static struct range *neighbour_at(size_t granule, const struct arena *arena) {
  struct range_chunk *chunk = chunk_if_any(granule);
  if (!chunk || chunk->arena != arena - arenas) return NULL;
  return &chunk->ranges[granule % GRANULES_PER_CHUNK];
}

static bool is_free(const struct range *neighbour, enum range_kind kind) {
  return neighbour && neighbour->kind == kind;
}

/* Of two merging ranges the larger one's age counts: a big old range is not made young for ever by
 * small frees beside it. */
static void inherit(struct range *into, const struct range *from, size_t into_granules) {
  if (from->info.granules > into_granules) into->info.stamp_ms = from->info.stamp_ms;
  into->was_moved |= from->was_moved;
  into->info.is_closed &= from->info.is_closed;
}

/* Inserts a range, merged with its free neighbours of the same kind. */
RESIDENT static void insert_merged(struct arena *arena, size_t first, size_t granules,
                                   enum range_kind kind) {
  struct range *next = neighbour_at(first + granules, arena);
  if (is_free(next, kind)) {
    size_t more = next->info.granules;
    inherit(record(first), next, granules);
    extract(arena, first + granules);
    granules += more;
  }
  struct range *last_before = first ? neighbour_at(first - 1, arena) : NULL;
  if (is_free(last_before, kind)) {
    size_t before = last_before->first; /* NOLINT(clang-analyzer-core.NullDereference): is_free */
    struct range *head = record(before), *own = record(first);
    struct range merged = *own;
    inherit(&merged, head, granules);
    extract(arena, before);
    granules += head->info.granules;
    head->info.stamp_ms = merged.info.stamp_ms;
    head->was_moved = merged.was_moved;
    head->info.is_closed = merged.info.is_closed;
    first = before;
  }
  insert(arena, first, granules, kind);
}

/* The first non-empty bin >= from, or BIN_COUNT. */
static unsigned next_bin(const struct range_set *set, unsigned from) {
  for (unsigned word = from / 64; word < BIN_WORDS; word++) {
    uint64_t bits = set->nonempty[word];
    if (word == from / 64) bits &= ~UINT64_C(0) << from % 64;
    if (bits) return word * 64 + lowest_bit(bits);
  }
  return BIN_COUNT;
}

/* The tightest of the first few ranges of a bin that hold `granules`, or NO_RANGE. */
static uint32_t best_in_bin(const struct range_set *set, unsigned bin, size_t granules) {
  uint32_t best = NO_RANGE;
  uint32_t best_granules = UINT32_MAX;
  uint32_t at = set->bins[bin];
  for (unsigned probe = 0; at != NO_RANGE && probe < FIT_PROBES; probe++) {
    const struct range *candidate = record(at);
    if (candidate->info.granules >= granules && candidate->info.granules < best_granules) {
      best = at;
      best_granules = candidate->info.granules;
    }
    at = candidate->next;
  }
  return best;
}

/* A tight fit: the best of the first bin that has one (docs/decisions/0004). */
static uint32_t find_in_set(const struct range_set *set, size_t granules) {
  for (unsigned bin = next_bin(set, bin_of(granules)); bin < BIN_COUNT;
       bin = next_bin(set, bin + 1)) {
    uint32_t found = best_in_bin(set, bin, granules);
    if (found != NO_RANGE) return found;
  }
  return NO_RANGE;
}

/* ---- taking ---------------------------------------------------------------------------------------- */

/* Cuts [first, first + granules) out of an extracted range of `total` granules that begins at
 * `whole`, and puts what is left over back. */
RESIDENT static void cut(struct arena *arena, size_t whole, size_t total, size_t first,
                         size_t granules, enum range_kind kind) {
  struct range *head = record(whole);
  uint32_t stamp_ms = head->info.stamp_ms;
  bool was_moved = head->was_moved, is_closed = head->info.is_closed;
  size_t end = whole + total;
  if (first > whole) insert(arena, whole, first - whole, kind);
  if (first + granules < end) {
    struct range *rest = record(first + granules);
    rest->info.stamp_ms = stamp_ms;
    rest->was_moved = was_moved;
    rest->info.is_closed = is_closed;
    insert(arena, first + granules, end - first - granules, kind);
  }
  record(first)->was_moved = was_moved;
  record(first)->info.is_closed = is_closed;
  set_boundaries(first, granules, RANGE_LIVE);
  if (kind != RANGE_DIRTY) note_refaults(first, granules);
}

static size_t align_granule(size_t granule, size_t alignment_granules) {
  size_t base = window.base >> GRANULE_SHIFT;
  return round_up(base + granule, alignment_granules) - base;
}

/* Granules among which the request fits wherever they begin. */
static size_t granules_with_alignment(const struct range_request *request) {
  return request->granules + request->alignment_granules - 1;
}

/* Out of a range that has `room` granules more than are needed. */
static size_t take_from_set(struct arena *arena, enum range_kind kind,
                            const struct range_request *request, size_t room) {
  uint32_t found = find_in_set(set_of(arena, kind), granules_with_alignment(request) + room);
  if (found == NO_RANGE) return NO_GRANULE;
  size_t total = record(found)->info.granules;
  extract(arena, found);
  size_t first = align_granule(found, request->alignment_granules);
  cut(arena, found, total, first, request->granules, kind);
  return first;
}

/* Takes the free range at `granule`, or its beginning, into the live one that begins at `first`. */
RESIDENT static size_t absorb(struct arena *arena, size_t first, size_t granule, size_t wanted) {
  struct range *head = record(first), *next = record(granule);
  enum range_kind kind = next->kind;
  size_t total = next->info.granules, taken = wanted < total ? wanted : total;
  head->was_moved |= next->was_moved;
  head->info.is_zero = head->info.is_zero && kind == RANGE_CLEAN;
  head->info.is_closed &= next->info.is_closed;
  extract(arena, granule);
  cut(arena, granule, total, granule, taken, kind);
  return taken;
}

static void give_back_instead(struct arena *arena, size_t granules, struct counters *counters);

static void offset_growth(struct arena *arena, size_t granules, struct counters *counters) {
  if (granules && load_relaxed(&set_of(arena, RANGE_DIRTY)->granules))
    give_back_instead(arena, granules, counters);
}

/* A DIRTY range of at least half the size whose right neighbour, CLEAN, has the rest: the request gets pages
 * that are resident already, and only the rest is fresh.  Large ones first. */
enum { JOIN_PROBES = 16, JOIN_DIVISOR = 2 };

static size_t take_joined_from(struct arena *arena, size_t granules, size_t *fresh) {
  const struct range_set *set = set_of(arena, RANGE_DIRTY);
  unsigned probes = 0, lowest = bin_of((granules + JOIN_DIVISOR - 1) / JOIN_DIVISOR);
  for (unsigned bin = bin_of(granules) + 1; bin-- > lowest;) {
    for (uint32_t at = set->bins[bin]; at != NO_RANGE; at = record(at)->next) {
      size_t has = record(at)->info.granules;
      if (has >= granules) continue; /* too short for the alignment of the request */
      if (++probes > JOIN_PROBES) return NO_GRANULE;
      const struct range *next = neighbour_at(at + has, arena);
      if (!is_free(next, RANGE_CLEAN) || next->info.granules < granules - has) continue;
      if (!commit_take((granules - has) << GRANULE_SHIFT)) return NO_GRANULE;
      extract(arena, at);
      absorb(arena, at, at + has, granules - has);
      set_boundaries(at, granules, RANGE_LIVE);
      *fresh = granules - has;
      return at;
    }
  }
  return NO_GRANULE;
}

static size_t take_joined(const struct range_request *request, struct counters *counters) {
  size_t granules = request->granules;
  if (request->alignment_granules > 1) return NO_GRANULE;
  for (unsigned step = 0; step < ARENA_COUNT; step++) {
    struct arena *arena = &arenas[(request->home + step) % ARENA_COUNT];
    if (load_relaxed(&set_of(arena, RANGE_DIRTY)->granules) < granules / JOIN_DIVISOR) continue;
    lock_take(&arena->lock, counters);
    size_t fresh = 0,
           first = arena->is_ready ? take_joined_from(arena, granules, &fresh) : NO_GRANULE;
    lock_give(&arena->lock);
    if (first == NO_GRANULE) continue;
    settle_fresh(first, granules);
    offset_growth(arena, fresh, counters);
    return first;
  }
  return NO_GRANULE;
}

/* Looks through every arena, the home one first, for a free range of this kind. */
RESIDENT static size_t take_from_arenas(enum range_kind kind, const struct range_request *request,
                                        size_t room, struct counters *counters) {
  for (unsigned step = 0; step < ARENA_COUNT; step++) {
    struct arena *arena = &arenas[(request->home + step) % ARENA_COUNT];
    if (load_relaxed(&set_of(arena, kind)->granules) < request->granules + room)
      continue; /* hint: not worth a lock */
    lock_take(&arena->lock, counters);
    size_t first = take_from_set(arena, kind, request, room);
    lock_give(&arena->lock);
    if (first != NO_GRANULE) return first;
  }
  return NO_GRANULE;
}

/* What was mapped anew has no huge pages, and no chunk that it belongs to. */
static void keep_huge_out(size_t first, size_t granules) {
  huge_keep_out(granule_address(first), granules << GRANULE_SHIFT);
  for (size_t at = first, end = first + granules; at < end; at = next_chunk(at))
    store_relaxed(&chunk_if_any(at)->may_be_huge, false);
}

/* Puts an extracted range (LIVE or BUSY) into the sets. */
LONG_LIVED static void put_back(size_t first, enum range_kind kind, struct counters *counters) {
  struct arena *arena = arena_of(first);
  size_t granules = record(first)->info.granules;
  if (UNLIKELY(!arena)) return; /* it has no pages, and nobody takes it again */
  lock_take(&arena->lock, counters);
  if (kind != RANGE_DIRTY) note_purge(first, granules);
  insert_merged(arena, first, granules, kind);
  lock_give(&arena->lock);
}

/* ---- where others have mapped something ------------------------------------------------------------ */

static enum os_map_result map_range_again(size_t first, size_t granules) {
  record(first)->info.is_closed = false;
  return os_map_at((void *)granule_address(first), granules << GRANULE_SHIFT);
}

/* Two parts of an extracted range, each as if it had been extracted by itself. */
static void divide(size_t first, size_t granules, size_t part, struct counters *counters) {
  struct arena *arena = arena_of(first);
  lock_take(&arena->lock, counters);
  set_boundaries(first, part, RANGE_BUSY);
  set_boundaries(first + part, granules - part, RANGE_BUSY);
  record(first + part)->was_moved = record(first + part)->info.is_closed =
      false; /* nothing is mapped */
  lock_give(&arena->lock);
}

/* Calls of the system for one range; what then is not known to be free waits with what is not. */
enum { ISOLATE_PROBES = 64 };

/* Of an extracted range without addresses, in which others have mapped something: halves that are free are UNMAPPED
 * again, the others are halved.
 * NOLINTNEXTLINE(misc-no-recursion): by halves, ISOLATE_PROBES at most */
static void isolate(size_t first, size_t granules, unsigned *probes, struct counters *counters) {
  if (granules == 1 || !*probes) {
    put_back(first, RANGE_OCCUPIED, counters);
    return;
  }
  size_t part = granules / 2;
  divide(first, granules, part, counters);
  for (unsigned half = 0; half < 2; half++) {
    size_t begin = half ? first + part : first, size = half ? granules - part : part;
    if (*probes) --*probes;
    if (os_is_occupied((const void *)granule_address(begin), size << GRANULE_SHIFT))
      isolate(begin, size, probes, counters);
    else
      put_back(begin, RANGE_UNMAPPED, counters);
  }
}

/* What others lay in may be free again: it is tried once more, now and then. */
static NOINLINE void forgive_occupied(struct counters *counters) {
  static ATOMIC(uint32_t) tried_ms;
  if (LIKELY(!bytes_of_kind(RANGE_OCCUPIED))) return;
  uint32_t now_ms = (uint32_t)os_now_coarse_ms(), before_ms = load_relaxed(&tried_ms);
  if (now_ms - before_ms < OCCUPIED_RETRY_MS) return;
  /* No order is needed: one thread is enough. */
  if (!cas_strong_acq_rel(&tried_ms, &before_ms, now_ms)) return;
  for (struct arena *arena = arenas; arena < arenas + ARENA_COUNT; arena++) {
    const struct range_set *set = set_of(arena, RANGE_OCCUPIED);
    lock_take(&arena->lock, counters);
    while (arena->is_ready && load_relaxed(&set->granules)) {
      uint32_t first = set->bins[next_bin(set, 0)];
      extract(arena, first);
      insert_merged(arena, first, record(first)->info.granules, RANGE_UNMAPPED);
    }
    lock_give(&arena->lock);
  }
}

/* Ranges that one request may find occupied. */
enum { UNMAPPED_TRIES = 4 };

static NOINLINE size_t take_unmapped(const struct range_request *request,
                                     struct counters *counters) {
  forgive_occupied(counters);
  for (unsigned tries = 0; tries < UNMAPPED_TRIES; tries++) {
    size_t first = take_from_arenas(RANGE_UNMAPPED, request, 0, counters);
    if (first == NO_GRANULE) return NO_GRANULE;
    enum os_map_result result = map_range_again(first, request->granules);
    if (result == OS_MAPPED) {
      keep_huge_out(first, request->granules);
      return first;
    }
    if (result == OS_NO_MEMORY) {
      put_back(first, RANGE_UNMAPPED, counters);
      return NO_GRANULE;
    }
    unsigned probes = ISOLATE_PROBES;
    isolate(first, request->granules, &probes, counters);
  }
  return NO_GRANULE;
}

/* ---- fresh ones --------------------------------------------------------------------------------------- */

/* All of them get records, or none. */
static bool publish_chunks(struct arena *arena, size_t first_chunk, size_t chunk_count,
                           bool may_be_huge) {
  for (size_t index = 0; index < chunk_count; index++) {
    struct range_chunk *chunk = metadata_allocate(sizeof *chunk);
    if (!chunk) {
      while (index) chunk_publish(first_chunk + --index, NULL);
      return false;
    }
    chunk->arena = (uint8_t)(arena - arenas);
    store_relaxed(&chunk->may_be_huge, may_be_huge);
    chunk_publish(first_chunk + index, (void *)((uintptr_t)chunk | CHUNK_IS_RANGES)); /* NOLINT */
  }
  return true;
}

static void ready(struct arena *arena) {
  if (arena->is_ready) return;
  for (unsigned kind = 0; kind < FREE_KIND_COUNT; kind++)
    for (unsigned bin = 0; bin < BIN_COUNT; bin++) arena->sets[kind].bins[bin] = NO_RANGE;
  arena->is_ready = true;
}

/* Where one request fills chunks huge pages are no waste; smaller ranges may leave gaps. */
static bool allow_huge(size_t chunk, size_t chunk_count, size_t wanted_granules) {
  bool is_worth_it = options.thp || wanted_granules >= GRANULES_PER_CHUNK;
  if (is_worth_it && !options.harden)
    return huge_let_in(chunk, chunk_count); /* else parts are closed */
  huge_keep_out(chunk_address(chunk), chunk_count << CHUNK_SHIFT);
  return false;
}

/* Hardened mode: what nobody has is closed.  Of very many pages that costs more than it finds, where few are used. */
#define CLOSED_MAX_BYTES ((size_t)64 << 20)
COLD static bool close_fresh(void *address, size_t bytes) {
  return bytes <= CLOSED_MAX_BYTES && os_close_pages(address, bytes);
}

/* Fresh chunks from the frontier, given to the arena as one CLEAN range. */
RESIDENT static bool add_chunks(struct arena *arena, size_t chunk_count, size_t wanted_granules,
                                struct counters *counters) {
  size_t guards = options.harden ? 1 : 0, chunk = window_grow(chunk_count, guards);
  if (chunk == NO_CHUNK) return false;
  bool may_be_huge = allow_huge(chunk, chunk_count, wanted_granules);
  if (!publish_chunks(arena, chunk, chunk_count, may_be_huge)) {
    window_give_back(chunk, chunk_count, guards);
    return false;
  }
  bool is_closed = UNLIKELY(options.harden) &&
                   close_fresh((void *)chunk_address(chunk), chunk_count << CHUNK_SHIFT);
  size_t granules = chunk_count * GRANULES_PER_CHUNK;
  lock_take(&arena->lock, counters);
  ready(arena);
  add_single_writer(&arena->granules, granules);
  record(chunk * GRANULES_PER_CHUNK)->info.is_closed = is_closed;
  insert_merged(arena, chunk * GRANULES_PER_CHUNK, granules, RANGE_CLEAN);
  lock_give(&arena->lock);
  return true;
}

/* Grows by what is needed at least; by more when the arena is large and the system allows. */
static bool grow_arena(const struct range_request *request, struct counters *counters) {
  struct arena *arena = &arenas[request->home % ARENA_COUNT];
  size_t granules = granules_with_alignment(request);
  size_t needed = (granules + GRANULES_PER_CHUNK - 1) / GRANULES_PER_CHUNK;
  size_t wanted = load_relaxed(&arena->granules) / GRANULES_PER_CHUNK / GROWTH_DIVISOR;
  if (wanted > GROWTH_MAX_CHUNKS) wanted = GROWTH_MAX_CHUNKS;
  if (wanted > needed && add_chunks(arena, wanted, granules, counters)) return true;
  return add_chunks(arena, needed, granules, counters);
}

static size_t take_clean(const struct range_request *request, struct counters *counters) {
  size_t first = take_from_arenas(RANGE_CLEAN, request, 0, counters);
  if (first == NO_GRANULE && (bytes_of_kind(RANGE_UNMAPPED) || bytes_of_kind(RANGE_OCCUPIED)))
    first = take_unmapped(request, counters);
  if (first == NO_GRANULE && grow_arena(request, counters))
    first = take_from_arenas(RANGE_CLEAN, request, 0, counters);
  return first;
}

/* A taken range is the caller's alone; neighbours look at nothing but its kind.  Blocks that began
 * inside it in a former life are forgotten. */
RESIDENT static void describe(size_t first, bool is_zero) {
  struct range_info *info = range_info(first);
  owner_map_clear(first, info->granules);
  info->is_zero = is_zero;
  info->uncounted = 0;
  store_relaxed(&info->site, 0);
}

/* What lies behind a block of `bytes`, wherever in its first page it begins; of a cached range that is larger not all. */
static size_t bytes_beyond(size_t granules, size_t bytes) {
  ASSERT(bytes <= size_of_granules(granules));
  size_t beyond =
      (granules << GRANULE_SHIFT) - round_up(bytes + COLOUR_ROOM_BYTES, os_page_bytes());
  size_t most = GRANULE_BYTES - os_page_bytes();
  return options.prefault ? 0 : beyond < most ? beyond : most;
}

static void set_uncounted(struct range_info *info, size_t bytes) {
  fetch_add_relaxed(&totals.uncounted_bytes, (uint64_t)bytes - range_uncounted_bytes(info));
  info->uncounted = (uint8_t)(bytes / COLOUR_ROOM_BYTES);
}

void range_count_whole(size_t granule) {
  struct range_info *info = range_info(granule);
  if (LIKELY(!info->uncounted)) return;
  commit_settle(0, range_uncounted_bytes(info));
  set_uncounted(info, 0);
}

/* Pages from `beyond` bytes before the end on have no memory any more; those of a fresh range have none yet. */
static bool give_end_back(size_t granule, size_t beyond, size_t bytes) {
  const struct range_info *info = range_info(granule);
  uintptr_t end = granule_address(granule) + ((uintptr_t)info->granules << GRANULE_SHIFT);
  return info->is_zero || os_purge((void *)(end - beyond), bytes); /* NOLINT */
}

bool range_count_within_limit(size_t granule, size_t bytes) {
  struct range_info *info = range_info(granule);
  size_t uncounted = range_uncounted_bytes(info), beyond = bytes_beyond(info->granules, bytes);
  if (beyond < uncounted) {
    if (!commit_take(uncounted - beyond)) return false;
    set_uncounted(info, beyond);
  } else if (beyond > uncounted && give_end_back(granule, beyond, beyond - uncounted)) {
    set_uncounted(info, beyond);
    commit_give(beyond - uncounted); /* last: nobody takes it while pages are there */
  }
  return true;
}

/* Room for the step that programs mostly grow by. */
enum { ROOM_DIVISOR = 2 };

RESIDENT size_t range_take_used(const struct range_request *request, struct counters *counters) {
  bool is_roomy = request->source == FROM_ROOMY;
  size_t room = is_roomy ? request->granules / ROOM_DIVISOR : 0;
  size_t first = take_from_arenas(RANGE_DIRTY, request, room, counters);
  if (first == NO_GRANULE && !is_roomy) first = take_joined(request, counters);
  if (first == NO_GRANULE) return NO_GRANULE;
  count(counters, COUNT_large_range_hits);
  describe(first, false);
  return first;
}

RESIDENT size_t range_take_fresh(const struct range_request *request, struct counters *counters) {
  size_t bytes = request->granules << GRANULE_SHIFT;
  if (!commit_take(bytes)) return NO_GRANULE;
  size_t first = take_clean(request, counters);
  if (first == NO_GRANULE) {
    commit_give(bytes);
    return NO_GRANULE;
  }
  settle_fresh(first, request->granules);
  offset_growth(arena_of(first), request->granules, counters);
  describe(first, true);
  return first;
}

/* ---- giving ---------------------------------------------------------------------------------------- */

/* A range of no arena is not taken again; its pages go at once. */
static COLD void give_pages_up(size_t first, size_t granules) {
  size_t bytes = granules << GRANULE_SHIFT;
  set_boundaries(first, granules, RANGE_BUSY);
  refuse_huge_at_ends(first, granules);
  if (os_purge((void *)granule_address(first), bytes)) commit_give(bytes);
}

RESIDENT static void give_part(size_t first, size_t granules, uint32_t stamp_ms,
                               struct counters *counters) {
  struct arena *arena = arena_of(first);
  if (UNLIKELY(!arena)) {
    give_pages_up(first, granules);
    return;
  }
  record(first)->info.stamp_ms = stamp_ms;
  lock_take(&arena->lock, counters);
  insert_merged(arena, first, granules, RANGE_DIRTY);
  lock_give(&arena->lock);
  purge_want();
}

static enum range_kind give_back(size_t first, enum range_kind kind, bool give_addresses);

/* A free range counts whole, as whoever takes it may touch all of it.  Where the limit forbids that, its pages go to
 * the system now: true. */
static COLD bool give_back_uncounted(size_t first, struct counters *counters) {
  struct range_info *info = range_info(first);
  size_t uncounted = range_uncounted_bytes(info), bytes = (size_t)info->granules << GRANULE_SHIFT;
  bool may_wait = commit_take_if_allowed(uncounted);
  set_uncounted(info, 0);
  if (may_wait) return false;
  if (!arena_of(first) || give_back(first, RANGE_DIRTY, false) != RANGE_CLEAN) {
    commit_settle(0, uncounted);
    return false;
  }
  commit_give(bytes - uncounted);
  put_back(first, RANGE_CLEAN, counters);
  return true;
}

RESIDENT void range_give(size_t granule, uint32_t stamp_ms, struct counters *counters) {
  if (UNLIKELY(record(granule)->info.uncounted) && give_back_uncounted(granule, counters)) return;
  give_part(granule, record(granule)->info.granules, stamp_ms, counters);
}

void range_give_lost(size_t granule, struct counters *counters) {
  struct range *head = record(granule);
  size_t bytes = (size_t)head->info.granules << GRANULE_SHIFT;
  if (!os_unmap((void *)granule_address(granule), bytes)) return; /* nobody can use it again */
  head->was_moved = false;
  commit_give(bytes);
  put_back(granule, RANGE_UNMAPPED, counters);
}

/* Its pages are gone already; strict overcommit charges what is mapped all the same. */
void range_give_empty(size_t granule, struct counters *counters) {
  if (os_overcommit_is_strict()) {
    range_give(granule, (uint32_t)os_now_coarse_ms(), counters);
    return;
  }
  commit_give((size_t)record(granule)->info.granules << GRANULE_SHIFT);
  put_back(granule, RANGE_CLEAN, counters);
}

void range_shrink(size_t granule, size_t new_granules, struct counters *counters) {
  struct range *head = record(granule);
  size_t rest = head->info.granules - new_granules;
  if (!rest) return;
  struct arena *arena = arena_of(granule);
  if (LIKELY(arena)) lock_take(&arena->lock, counters);
  set_boundaries(granule, new_granules, RANGE_LIVE);
  record(granule + new_granules)->was_moved = head->was_moved;
  if (LIKELY(arena)) lock_give(&arena->lock);
  give_part(granule + new_granules, rest, (uint32_t)os_now_coarse_ms(), counters);
}

/* Do at least `wanted` free granules follow without a gap, of whatever kind of mapped ones?  *clean tells how many
 * of those have no pages yet. */
static bool are_free_at(size_t granule, size_t wanted, const struct arena *arena, size_t *clean) {
  *clean = 0;
  for (size_t found = 0; found < wanted;) {
    const struct range *next = neighbour_at(granule + found, arena);
    if (!is_free(next, RANGE_DIRTY) && !is_free(next, RANGE_CLEAN)) return false;
    size_t has = next->info.granules, rest = wanted - found;
    if (next->kind == RANGE_CLEAN) *clean += has < rest ? has : rest;
    found += has;
  }
  return true;
}

RESIDENT bool range_extend(size_t granule, size_t new_granules, struct counters *counters) {
  size_t granules = record(granule)->info.granules, end = granule + granules;
  size_t more = new_granules - granules, clean;
  struct arena *arena = arena_of(granule);
  if (UNLIKELY(!arena)) return false;
  lock_take(&arena->lock, counters);
  bool is_extended = are_free_at(end, more, arena, &clean) && commit_take(clean << GRANULE_SHIFT);
  if (is_extended) {
    for (size_t taken = 0; taken < more;)
      taken += absorb(arena, granule, end + taken, more - taken);
    owner_map_clear(end, more);
    set_boundaries(granule, new_granules, RANGE_LIVE);
  }
  lock_give(&arena->lock);
  if (is_extended && clean) settle_fresh(granule, new_granules);
  if (is_extended) offset_growth(arena, clean, counters);
  return is_extended;
}

void range_note_moved(size_t granule) { record(granule)->was_moved = true; }

static bool covers(size_t first, size_t granule) {
  const struct range *candidate = record_if_any(first);
  return candidate && load_relaxed(&window.owner_map[first]) && first <= granule &&
         candidate->info.granules > granule - first;
}

size_t range_covering_near(size_t granule, size_t granules_max) {
  const struct range *here = record_if_any(granule);
  /* What the record says counts only if it is so; others may be writing it. */
  if (here && covers(here->first, granule)) return here->first;
  for (size_t at = granule;; at--) {
    if (covers(at, granule)) return at;
    if (!record_if_any(at) || at == 0 || load_relaxed(&window.owner_map[at])) return NO_GRANULE;
    if (granule - at >= granules_max) return NO_GRANULE;
  }
}

size_t range_covering(size_t granule) { return range_covering_near(granule, SIZE_MAX); }

void range_note_begin(size_t granule) {
  size_t last = granule + range_info(granule)->granules - 1;
  for (size_t at = granule; at < last; at++) record(at)->first = (uint32_t)granule;
}

/* ---- purge ------------------------------------------------------------------------------------------ */

static uint64_t live_bytes(void) {
  uint64_t granules = 0;
  for (unsigned arena = 0; arena < ARENA_COUNT; arena++)
    granules += load_relaxed(&arenas[arena].granules);
  uint64_t bytes = granules << GRANULE_SHIFT, free_bytes = 0;
  for (unsigned kind = 0; kind < FREE_KIND_COUNT; kind++)
    free_bytes += bytes_of_kind((enum range_kind)(FREE_KIND_FIRST + kind));
  return bytes > free_bytes ? bytes - free_bytes : 0; /* read one by one: only about right */
}

/* What a program frees and takes again is of the order of what it holds, so as much may wait for its
 * decay; purging more just breaks DIRTY ranges apart (measured: docs/decisions/0004). */
RESIDENT uint64_t range_excess_bytes(void) {
  uint64_t dirty = bytes_of_kind(RANGE_DIRTY);
  uint64_t least = limits_budget(options.big_cache_bytes);
  if (LIKELY(dirty <= least)) return 0;
  uint64_t budget = least ? live_bytes() : 0;
  if (budget < least) budget = least;
  budget = limits_at_most(budget);
  return dirty > budget ? dirty - budget : 0;
}

/* Extracts a batch of free ranges of the kind that are due; they are BUSY meanwhile. */
static unsigned collect_due(struct purge *purge, struct arena *arena, enum range_kind kind,
                            uint32_t batch[PURGE_BATCH]) {
  unsigned found = 0;
  const struct range_set *set = set_of(arena, kind);
  for (unsigned bin = next_bin(set, 0); bin < BIN_COUNT; bin = next_bin(set, bin + 1)) {
    for (uint32_t at = set->bins[bin], next; at != NO_RANGE; at = next) {
      next = record(at)->next;
      if (found == PURGE_BATCH) {
        purge->work_remains = true;
        return found;
      }
      if (!purge_is_due(purge, record(at)->info.stamp_ms)) continue;
      purge_account(purge, (size_t)record(at)->info.granules << GRANULE_SHIFT);
      extract(arena, at);
      batch[found++] = at;
    }
  }
  return found;
}

/* What the range is afterwards. */
static enum range_kind give_back(size_t first, enum range_kind kind, bool give_addresses) {
  struct range *head = record(first);
  void *address = (void *)granule_address(first);
  size_t bytes = (size_t)head->info.granules << GRANULE_SHIFT;
  if (give_addresses && os_unmap(address, bytes)) {
    head->was_moved = head->info.is_closed = false;
    return RANGE_UNMAPPED;
  }
  enum os_change remapped = head->was_moved ? os_remap(address, bytes) : OS_REFUSED;
  if (remapped != OS_REFUSED) {
    head->was_moved = head->info.is_closed = false;
    if (remapped == OS_DONE) {
      keep_huge_out(first, head->info.granules);
      return RANGE_CLEAN;
    }
    return os_unmap(address, bytes) ? RANGE_UNMAPPED : kind; /* what is left of it */
  }
  if (kind == RANGE_CLEAN) return kind; /* the system would not have its addresses */
  refuse_huge_at_ends(first, head->info.granules);
  return os_purge(address, bytes) ? RANGE_CLEAN : kind;
}

/* True when the system took any. */
LONG_LIVED static bool give_back_batch(uint32_t *batch, unsigned found, enum range_kind kind,
                                       bool give_addresses, struct counters *counters) {
  bool is_taken = false;
  for (unsigned index = 0; index < found; index++) {
    enum range_kind now = give_back(batch[index], kind, give_addresses);
    if (kind == RANGE_DIRTY && now != RANGE_DIRTY)
      commit_give((size_t)record(batch[index])->info.granules << GRANULE_SHIFT);
    is_taken |= now != kind;
    put_back(batch[index], now, counters);
  }
  return is_taken;
}

/* Gives one batch back; false when it was the last, or when the system took none of it: the next would be
 * the same ranges again. */
LONG_LIVED static bool purge_batch(struct purge *purge, struct arena *arena, enum range_kind kind,
                                   struct counters *counters) {
  uint32_t batch[PURGE_BATCH];
  lock_take(&arena->lock, counters);
  unsigned found = arena->is_ready ? collect_due(purge, arena, kind, batch) : 0;
  lock_give(&arena->lock);
  bool is_taken = give_back_batch(batch, found, kind, purge->give_addresses, counters);
  return is_taken && found == PURGE_BATCH && purge->bytes_left;
}

/* Extracts DIRTY ranges, the largest first, that have `granules` at most; they are BUSY meanwhile. */
static unsigned collect_largest(struct arena *arena, size_t granules, uint32_t batch[PURGE_BATCH]) {
  const struct range_set *set = set_of(arena, RANGE_DIRTY);
  unsigned found = 0;
  for (unsigned bin = bin_of(granules) + 1; bin-- > 0;) {
    for (uint32_t at = set->bins[bin], next; at != NO_RANGE; at = next) {
      next = record(at)->next;
      if (record(at)->info.granules > granules) continue;
      granules -= record(at)->info.granules;
      purge_credit_note(record(at)->info.granules);
      extract(arena, at);
      batch[found++] = at;
      if (!granules || found == PURGE_BATCH) return found;
    }
  }
  return found;
}

/* The process has grown by so much although much is free, but nothing that fits: as much of it goes back, as far as
 * that has been earned.  What is a little too small was of no use now, and is the next to be so. */
static NOINLINE void give_back_instead(struct arena *arena, size_t granules,
                                       struct counters *counters) {
  uint32_t batch[PURGE_BATCH];
  if (!purge_credit_allows(granules)) return;
  lock_take(&arena->lock, counters);
  unsigned found = collect_largest(arena, granules, batch);
  lock_give(&arena->lock);
  give_back_batch(batch, found, RANGE_DIRTY, os_overcommit_is_strict(), counters);
}

static void purge_arena(struct purge *purge, struct arena *arena, enum range_kind kind,
                        struct counters *counters) {
  while (purge_batch(purge, arena, kind, counters)) {
  }
}

LONG_LIVED void range_purge(struct purge *purge, struct counters *counters) {
  bool asked_for_addresses = purge->give_addresses;
  purge->give_addresses |= os_overcommit_is_strict();
  for (unsigned arena = 0; arena < ARENA_COUNT; arena++) {
    if (load_relaxed(&set_of(&arenas[arena], RANGE_DIRTY)->granules))
      purge_arena(purge, &arenas[arena], RANGE_DIRTY, counters);
    if (asked_for_addresses && load_relaxed(&set_of(&arenas[arena], RANGE_CLEAN)->granules))
      purge_arena(purge, &arenas[arena], RANGE_CLEAN, counters);
  }
  purge->give_addresses = asked_for_addresses;
}

void range_measure(struct range_sizes *sizes) {
  *sizes = (struct range_sizes){.mapped_bytes = load_relaxed(&granules_set_aside) << GRANULE_SHIFT};
  for (unsigned index = 0; index < ARENA_COUNT; index++) {
    struct arena *arena = &arenas[index];
    uint64_t unmapped = load_relaxed(&set_of(arena, RANGE_UNMAPPED)->granules) +
                        load_relaxed(&set_of(arena, RANGE_OCCUPIED)->granules);
    sizes->mapped_bytes += (load_relaxed(&arena->granules) - unmapped) << GRANULE_SHIFT;
    sizes->dirty_bytes += load_relaxed(&set_of(arena, RANGE_DIRTY)->granules) << GRANULE_SHIFT;
    sizes->clean_bytes += load_relaxed(&set_of(arena, RANGE_CLEAN)->granules) << GRANULE_SHIFT;
  }
}

static void note_free(struct range_free *found, uint64_t bytes) {
  if (!found->ranges || bytes < found->smallest_bytes) found->smallest_bytes = bytes;
  if (bytes > found->largest_bytes) found->largest_bytes = bytes;
  found->bytes += bytes;
  found->ranges++;
}

void range_look_at_dirty(struct range_free *found, struct counters *counters) {
  *found = (struct range_free){0};
  for (unsigned index = 0; index < ARENA_COUNT; index++) {
    struct arena *arena = &arenas[index];
    const struct range_set *set = set_of(arena, RANGE_DIRTY);
    if (!load_relaxed(&set->granules)) continue;
    lock_take(&arena->lock, counters);
    for (unsigned bin = next_bin(set, 0); bin < BIN_COUNT; bin = next_bin(set, bin + 1))
      for (uint32_t at = set->bins[bin]; at != NO_RANGE; at = record(at)->next)
        note_free(found, (uint64_t)record(at)->info.granules << GRANULE_SHIFT);
    lock_give(&arena->lock);
  }
}

/* ---- fork ----------------------------------------------------------------------------------------------- */

/* A thread that did not come along was changing the lists.  Live ranges stay what they are, the free ones are lost to
 * the child, and the arena begins anew. */
static COLD void set_aside(struct arena *arena) {
  uint8_t index = (uint8_t)(arena - arenas);
  size_t end = load_relaxed(&window.frontier_chunk);
  for (size_t at = 0; at < end; at++) {
    struct range_chunk *chunk = chunk_if_any(at * GRANULES_PER_CHUNK);
    if (!chunk || chunk->arena != index) continue;
    chunk->arena = ARENA_SET_ASIDE;
    add_single_writer(&granules_set_aside, GRANULES_PER_CHUNK); /* the child has one thread */
  }
  store_relaxed(&arena->granules, 0);
  arena->is_ready = false;
  for (unsigned kind = 0; kind < FREE_KIND_COUNT; kind++) {
    struct range_set *set = &arena->sets[kind];
    store_relaxed(&set->granules, 0);
    for (unsigned word = 0; word < BIN_WORDS; word++) set->nonempty[word] = 0;
  }
}

void range_after_fork(void) {
  for (unsigned arena = 0; arena < ARENA_COUNT; arena++)
    if (lock_reset_in_child(&arenas[arena].lock)) set_aside(&arenas[arena]);
}
