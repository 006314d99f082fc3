#include "ranges/arena.h"

#include <string.h>

/* Ranges checked in the bin of the wanted size itself, where not every range fits; and, for an
 * alignment, in all bins before those in which every range fits. */
enum { FIT_PROBES = 16, ALIGNED_PROBES = 64 };
/* Ranges checked for a place by age; if none of them fits, the range counts as younger than it
 * is. */
enum { AGE_PROBES = 16 };

RARE_DATA struct arena arenas[ARENA_COUNT]; /* all zero, the locks' rank too */
ATOMIC(uint32_t) arenas_in_use;
static ATOMIC(uint64_t) granules_set_aside;

RESIDENT struct arena *arena_of(size_t granule) {
  unsigned arena = range_chunk(granule)->arena;
  return arena < ARENA_COUNT ? &arenas[arena] : NULL;
}

RESIDENT uint64_t arenas_bytes_of(enum range_kind kind) {
  uint64_t granules = 0;
  for (unsigned arena = 0; arena < ARENA_COUNT; arena++)
    granules += arena_granules_of(&arenas[arena], kind);
  return granules << GRANULE_SHIFT;
}

uint64_t arenas_bytes_set_aside(void) { return load_relaxed(&granules_set_aside) << GRANULE_SHIFT; }

/* ---- laws ------------------------------------------------------------------------------------ */

bool range_is_valid(size_t first) {
  const struct range *head = range_record_if_any(first);
  if (!head || !head->info.granules || head->kind == RANGE_NONE) return false;
  const struct range *tail = range_record_if_any(first + head->info.granules - 1);
  return tail && tail->kind == head->kind && tail->first == first;
}

static bool may_follow(const struct range *older, const struct range *younger,
                       enum range_kind kind) {
  return kind != RANGE_DIRTY || (int32_t)(younger->info.stamp_ms - older->info.stamp_ms) >= 0;
}

static bool is_list_valid(const struct range_set *set, enum range_kind kind, unsigned ranges_max) {
  bool is_whole = ranges_max == EVERY_RANGE;
  uint64_t granules = 0;
  uint32_t before = NO_RANGE;
  for (uint32_t at = set->oldest; at != NO_RANGE; at = range_record(at)->younger) {
    const struct range *range = range_record(at);
    if (!range_is_valid(at) || range->kind != kind || range->older != before) return false;
    if (before != NO_RANGE && !may_follow(range_record(before), range, kind)) return false;
    if (!ranges_max--) return true;
    granules += range->info.granules;
    before = at;
  }
  return set->youngest == before && (!is_whole || load_relaxed(&set->granules) == granules);
}

static bool is_bin_valid(const struct range_set *set, unsigned bin, enum range_kind kind) {
  uint32_t at = set->bins[bin];
  if ((set->nonempty[bin / 64] >> bin % 64 & 1) != (at != NO_RANGE)) return false;
  if (at == NO_RANGE) return true;
  const struct range *head = range_record(at);
  return head->kind == kind && head->previous == NO_RANGE && bin_of(head->info.granules) == bin;
}

bool arena_is_valid(struct arena *arena, unsigned ranges_max) {
  for (unsigned index = 0; index < FREE_KIND_COUNT; index++) {
    enum range_kind kind = (enum range_kind)(FREE_KIND_FIRST + index);
    const struct range_set *set = set_of(arena, kind);
    if (!is_list_valid(set, kind, ranges_max)) return false;
    for (unsigned bin = 0; bin < BIN_COUNT && ranges_max == EVERY_RANGE; bin++)
      if (!is_bin_valid(set, bin, kind)) return false;
  }
  return true;
}

/* Ranges of each set that every hold of a lock checks in debug builds. */
enum { LAW_PROBES = 8 };

RESIDENT void arena_lock(struct arena *arena, struct counters *counters) {
  lock_take(&arena->lock, counters);
  ASSERT(!arena->is_held && (arena->is_held = true) && arena_is_valid(arena, LAW_PROBES));
}

RESIDENT void arena_unlock(struct arena *arena) {
  ASSERT(arena->is_held && arena_is_valid(arena, LAW_PROBES) && !(arena->is_held = false));
  lock_give(&arena->lock);
}

/* ---- sets ------------------------------------------------------------------------------------ */

RESIDENT unsigned bin_of(size_t granules) {
  if (granules <= EXACT_BINS) return (unsigned)granules - 1;
  unsigned top = highest_bit(granules);
  unsigned bin = EXACT_BINS + (top - 5) * BINS_PER_DOUBLING + ((granules >> (top - 3)) & 7);
  return bin < BIN_COUNT ? bin : BIN_COUNT - 1;
}

/* The first non-empty bin >= from, or BIN_COUNT. */
RESIDENT static unsigned next_bin(const struct range_set *set, unsigned from) {
  for (unsigned word = from / 64; word < BIN_WORDS; word++) {
    uint64_t bits = set->nonempty[word];
    if (word == from / 64) bits &= ~UINT64_C(0) << from % 64;
    if (bits) return word * 64 + lowest_bit(bits);
  }
  return BIN_COUNT;
}

static bool is_younger(uint32_t at, uint32_t stamp_ms) {
  return (int32_t)(range_record(at)->info.stamp_ms - stamp_ms) > 0;
}

/* The youngest range that is at least as old as `info`, or NO_RANGE. A range freed just now goes
 * last. Only DIRTY ranges' age matters. */
RESIDENT static uint32_t place_by_age(const struct range_set *set, struct range_info *info,
                                      enum range_kind kind) {
  uint32_t at = set->youngest;
  if (at == NO_RANGE || kind != RANGE_DIRTY || !is_younger(at, info->stamp_ms)) return at;
  if (is_younger(set->oldest, info->stamp_ms - 1)) return NO_RANGE; /* as old: it was taken there */
  for (unsigned probe = 0; probe < AGE_PROBES && is_younger(at, info->stamp_ms); probe++)
    at = range_record(at)->older;
  if (is_younger(at, info->stamp_ms)) info->stamp_ms = range_record(at)->info.stamp_ms;
  return at;
}

/* The links of the list by age that lead to the range between these two. */
static uint32_t *link_from_older(struct range_set *set, uint32_t older) {
  return older == NO_RANGE ? &set->oldest : &range_record(older)->younger;
}
static uint32_t *link_from_younger(struct range_set *set, uint32_t younger) {
  return younger == NO_RANGE ? &set->youngest : &range_record(younger)->older;
}

/* Changes the sum once per change of the set, by the final difference: a concurrent reader does not
 * miss a range that only moves to another place.
 *
 * Its place by age is after `older`. */
RESIDENT static void list_behind(struct arena *arena, size_t first, size_t granules,
                                 enum range_kind kind, uint32_t older, uint64_t gained) {
  struct range_set *set = set_of(arena, kind);
  struct range *head = range_record(first);
  unsigned bin = bin_of(granules);
  range_set_boundaries(first, granules, kind);
  range_link(&set->bins[bin], head, (uint32_t)first);
  set->nonempty[bin / 64] |= UINT64_C(1) << bin % 64;
  head->older = older;
  head->younger = *link_from_older(set, older);
  *link_from_older(set, older) = (uint32_t)first;
  *link_from_younger(set, head->younger) = (uint32_t)first;
  add_single_writer(&set->granules, gained); /* under the lock */
}

RESIDENT NOINLINE static void unlist(struct arena *arena, size_t first, uint64_t lost) {
  struct range *head = range_record(first);
  struct range_set *set = set_of(arena, head->kind);
  unsigned bin = bin_of(head->info.granules);
  ASSERT(arena->is_held && range_is_valid(first));
  range_unlink(&set->bins[bin], head);
  if (set->bins[bin] == NO_RANGE) set->nonempty[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  *link_from_older(set, head->older) = head->younger;
  *link_from_younger(set, head->younger) = head->older;
  add_single_writer(&set->granules, (uint64_t)0 - lost);
  range_set_boundaries(first, head->info.granules, RANGE_BUSY);
}

void arena_extract(struct arena *arena, size_t first) {
  unlist(arena, first, range_record(first)->info.granules);
}

/* ---- merging --------------------------------------------------------------------------------- */

/* The record of a granule beside a range of this arena; NULL outside this arena: others' records
 * are not read, as their lock is not held. */
RESIDENT static struct range *neighbour_at(const struct arena *arena, size_t granule) {
  struct range_chunk *chunk = range_chunk_if_any(granule);
  if (!chunk || chunk->arena != arena - arenas) return NULL;
  return &chunk->ranges[granule % GRANULES_PER_CHUNK];
}

RESIDENT struct range *arena_free_at(const struct arena *arena, size_t granule,
                                     enum range_kind kind, enum range_kind or_kind) {
  struct range *head = neighbour_at(arena, granule);
  return head && (head->kind == kind || head->kind == or_kind) ? head : NULL;
}

/* A range on its way into a set. */
struct merged {
  size_t first;
  struct range record; /* the first granule's, except for the fields about its place */
  uint32_t older;      /* where its age has a place */
  bool has_place;
};

static void merge(struct arena *arena, struct merged *into, size_t first) {
  const struct range *neighbour = range_record(first);
  if (into->has_place && into->older == first) into->older = neighbour->older;
  if (neighbour->info.granules > into->record.info.granules) {
    into->record.info.stamp_ms = neighbour->info.stamp_ms;
    into->older = neighbour->older;
    into->has_place = true;
  }
  into->record.info.purged += neighbour->info.purged;
  into->record.was_moved |= neighbour->was_moved;
  into->record.info.is_closed &= neighbour->info.is_closed;
  into->record.info.granules += neighbour->info.granules;
  if (first < into->first) into->first = first;
  unlist(arena, first, 0);
}

RESIDENT void arena_insert(struct arena *arena, size_t first, size_t granules,
                           enum range_kind kind) {
  struct merged merged = {.first = first, .record = *range_record(first)};
  merged.record.info.granules = (uint32_t)granules;
  if (arena_free_at(arena, first + granules, kind, kind)) merge(arena, &merged, first + granules);
  const struct range *before = neighbour_at(arena, first - 1);
  if (before && before->kind == kind) merge(arena, &merged, before->first);
  struct range *head = range_record(merged.first);
  if (!merged.has_place)
    merged.older = place_by_age(set_of(arena, kind), &merged.record.info, kind);
  head->info.purged = merged.record.info.purged;
  head->info.stamp_ms = merged.record.info.stamp_ms;
  head->was_moved = merged.record.was_moved;
  head->info.is_closed = merged.record.info.is_closed;
  list_behind(arena, merged.first, merged.record.info.granules, kind, merged.older, granules);
}

RESIDENT void arena_add_chunks(struct arena *arena, size_t first_chunk, size_t chunk_count,
                               bool is_closed) {
  size_t first = first_chunk * GRANULES_PER_CHUNK, granules = chunk_count * GRANULES_PER_CHUNK;
  ASSERT(first != NO_RANGE);
  fetch_or_relaxed(&arenas_in_use, 1u << (arena - arenas));
  fetch_add_relaxed(&arena->granules, granules); /* not read before it is written: one fault */
  range_record(first)->info.is_closed = is_closed;
  arena_insert(arena, first, granules, RANGE_CLEAN);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Which granules of a range went back is unknown: a part is assumed to have as many of them as
 * possible. */
static uint32_t take_purged(uint32_t *purged, size_t granules) {
  uint32_t taken = *purged < granules ? *purged : (uint32_t)granules;
  *purged -= taken;
  return taken;
}

RESIDENT void arena_cut(struct arena *arena, size_t whole, size_t first, size_t granules) {
  const struct range extracted = *range_record(whole);
  enum range_kind kind = extracted.kind;
  size_t end = whole + extracted.info.granules;
  ASSERT(range_may_cut(whole, first) && range_may_cut(whole, first + granules));
  unlist(arena, whole, granules);
  uint32_t older = extracted.older, purged = kind == RANGE_DIRTY ? 0 : extracted.info.purged;
  uint32_t again = take_purged(&purged, granules);
  if (again) fetch_add_relaxed(&totals.refaulted_bytes, again * GRANULE_BYTES);
  if (first > whole) {
    range_record(whole)->info.purged = take_purged(&purged, first - whole);
    list_behind(arena, whole, first - whole, kind, older, 0);
    older = (uint32_t)whole;
  }
  struct range *rest = first + granules < end ? range_record(first + granules) : NULL;
  if (rest) {
    rest->info.purged = purged;
    rest->info.stamp_ms = extracted.info.stamp_ms;
    rest->was_moved = extracted.was_moved;
    rest->info.is_closed = extracted.info.is_closed;
    list_behind(arena, first + granules, end - first - granules, kind, older, 0);
  }
  range_record(first)->was_moved = extracted.was_moved;
  range_record(first)->info.is_closed = extracted.info.is_closed;
  range_set_boundaries(first, granules, RANGE_LIVE);
}

/* Cuts in front of `at`; false when more spare records are needed. */
static bool cut_with_spares(struct arena *arena, size_t at) {
  for (size_t chunk = (at - 1) / GRANULES_PER_CHUNK; chunk <= at / GRANULES_PER_CHUNK; chunk++) {
    if (chunk_metadata(chunk)) continue;
    if (!arena->spare_count) return false;
    range_publish_records(chunk, arena->spares[--arena->spare_count], (unsigned)(arena - arenas),
                          true);
  }
  return true;
}

bool arena_prepare_cut(struct arena *arena, size_t whole, size_t first, size_t end,
                       struct counters *counters) {
  if ((range_may_cut(whole, first) || cut_with_spares(arena, first)) &&
      (range_may_cut(whole, end) || cut_with_spares(arena, end)))
    return true;
  arena_unlock(arena);
  struct range_chunk *records = range_make_records();
  arena_lock(arena, counters);
  if (records && arena->spare_count < SPARES_MAX) arena->spares[arena->spare_count++] = records;
  return records;
}

static size_t align_granule(size_t granule, size_t alignment_granules) {
  size_t base = window.base >> GRANULE_SHIFT;
  return round_up(base + granule, alignment_granules) - base;
}

static bool fits(uint32_t at, const struct range_request *request) {
  size_t first = align_granule(at, request->alignment_granules);
  return first + request->granules + request->headroom <= at + range_record(at)->info.granules;
}

/* The tightest of the first few ranges of a bin that fit, or NO_RANGE. */
RESIDENT static uint32_t best_in_bin(const struct range_set *set, unsigned bin,
                                     const struct range_request *request) {
  uint32_t best = NO_RANGE, at = set->bins[bin];
  for (unsigned probe = 0; at != NO_RANGE && probe < FIT_PROBES; probe++) {
    const struct range *candidate = range_record(at);
    bool is_tighter =
        best == NO_RANGE || candidate->info.granules < range_record(best)->info.granules;
    if (is_tighter && fits(at, request)) best = at;
    at = candidate->next;
  }
  return best;
}

/* The best range of the first bin that has one (docs/decisions/0004). From the bin on whose ranges
 * all have room for the alignment wherever they begin, every range fits. */
RESIDENT static uint32_t find_in_set(const struct range_set *set,
                                     const struct range_request *request) {
  size_t granules = request->granules + request->headroom;
  unsigned sure = bin_of(granules + request->alignment_granules - 1), probes = 0;
  for (unsigned bin = next_bin(set, bin_of(granules)); bin < BIN_COUNT;
       bin = next_bin(set, bin + 1)) {
    if (bin < sure && probes >= ALIGNED_PROBES) continue;
    probes += FIT_PROBES;
    uint32_t found = best_in_bin(set, bin, request);
    if (found != NO_RANGE) return found;
  }
  return NO_RANGE;
}

RESIDENT size_t arena_take(struct arena *arena, enum range_kind kind,
                           const struct range_request *request, struct counters *counters) {
  for (;;) {
    uint32_t found = find_in_set(set_of(arena, kind), request);
    if (found == NO_RANGE) return NO_GRANULE;
    size_t first = align_granule(found, request->alignment_granules);
    size_t end = first + request->granules;
    if (LIKELY(range_may_cut(found, first) && range_may_cut(found, end))) {
      arena_cut(arena, found, first, request->granules);
      return first;
    }
    if (!arena_prepare_cut(arena, found, first, end, counters)) return NO_GRANULE;
  }
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* A thread that does not exist in the child was changing the lists. Live ranges stay, free ones are
 * lost to it, the arena begins anew. */
static COLD void set_aside(struct arena *arena) {
  uint8_t index = (uint8_t)(arena - arenas);
  size_t end = load_relaxed(&window.frontier_chunk);
  for (size_t at = 0; at < end; at++) {
    struct range_chunk *chunk = range_chunk_if_any(at * GRANULES_PER_CHUNK);
    if (!chunk || chunk->arena != index) continue;
    chunk->arena = ARENA_SET_ASIDE;
  }
  add_single_writer(&granules_set_aside, load_relaxed(&arena->granules)); /* it has one thread */
  store_relaxed(&arena->granules, 0);
  arena->is_held = false;
  arena->spare_count = 0;
  memset(arena->sets, 0, sizeof arena->sets);
}

void arenas_after_fork(void) {
  for (unsigned arena = 0; arena < ARENA_COUNT; arena++)
    if (lock_reset_in_child(&arenas[arena].lock)) set_aside(&arenas[arena]);
}
