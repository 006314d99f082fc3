/* range.c: see range.h.
 *
 *   range_take_used ── range_take_kind(DIRTY), take_joined
 *   range_take_fresh ── range_take_clean
 *   range_give ── arena_insert */
#include "ranges/range.h"

#include "map/commit.h"
#include "os/os.h"

/* Takes the free range at `granule`, or its beginning, into the live one that begins at `first`. */
static size_t absorb(struct arena *arena, size_t first, size_t granule, size_t wanted) {
  struct range *head = range_record(first), *next = range_record(granule);
  size_t total = next->info.granules, taken = wanted < total ? wanted : total;
  head->was_moved |= next->was_moved;
  head->info.is_zero = head->info.is_zero && next->kind == RANGE_CLEAN;
  head->info.is_closed &= next->info.is_closed;
  arena_cut(arena, granule, granule, taken);
  return taken;
}

/* A part of this size goes at once: the program has said that it needs it no longer, and may call
 * nothing else for a while. */
#define CUT_OFF_MUCH_BYTES ((size_t)16 << 20)

/* A DIRTY range whose right neighbour, CLEAN, has the rest: the request gets pages that are
 * resident already, and only the rest is fresh.  Large ones first, and those of less than half the
 * size only where a part of a block may have been cut off: the two are used again as one, else
 * addresses would be used up. */
enum { JOIN_PROBES = 16, JOIN_DIVISOR = 2 };

static size_t joined_from(size_t granules) {
  bool may_be_cut_off = granules > CUT_OFF_MUCH_BYTES >> GRANULE_SHIFT;
  return may_be_cut_off ? 1 : (granules + JOIN_DIVISOR - 1) / JOIN_DIVISOR;
}

static size_t take_joined_from(struct arena *arena, size_t granules, size_t *fresh) {
  const struct range_set *set = set_of(arena, RANGE_DIRTY);
  unsigned probes = 0, lowest = bin_of(joined_from(granules));
  for (unsigned bin = bin_of(granules) + 1; bin-- > lowest;) {
    for (uint32_t at = set->bins[bin]; at != NO_RANGE; at = range_record(at)->next) {
      size_t has = range_record(at)->info.granules;
      if (has >= granules) continue; /* too short for the alignment of the request */
      if (++probes > JOIN_PROBES) return NO_GRANULE;
      const struct range *next = arena_free_at(arena, at + has, RANGE_CLEAN, RANGE_CLEAN);
      if (!next || next->info.granules < granules - has || !range_may_cut(at + has, at + granules))
        continue;
      if (!commit_take((granules - has) << GRANULE_SHIFT)) return NO_GRANULE;
      arena_extract(arena, at);
      absorb(arena, at, at + has, granules - has);
      range_set_boundaries(at, granules, RANGE_LIVE);
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
    if (arena_granules_of(arena, RANGE_DIRTY) < joined_from(granules)) continue;
    arena_lock(arena, counters);
    size_t fresh = 0, first = take_joined_from(arena, granules, &fresh);
    arena_unlock(arena);
    if (first == NO_GRANULE) continue;
    range_refuse_huge_at_ends(first, granules);
    range_offset_growth(arena, fresh, counters);
    return first;
  }
  return NO_GRANULE;
}

/* A taken range is the caller's alone; neighbours read only its kind. Block starts noted inside it
 * by a former use are cleared. */
RESIDENT static void describe(size_t first, bool is_zero) {
  struct range_info *info = range_info(first);
  owner_map_clear(first, info->granules);
  info->is_zero = is_zero;
  info->uncounted = 0;
  store_relaxed(&info->site, 0);
}

RESIDENT size_t range_take_used(const struct range_request *request, struct counters *counters) {
  size_t first = range_take_kind(RANGE_DIRTY, request, counters);
  if (first == NO_GRANULE && !request->headroom) first = take_joined(request, counters);
  if (first == NO_GRANULE) return NO_GRANULE;
  count(counters, COUNT_large_range_hits);
  describe(first, false);
  return first;
}

RESIDENT size_t range_take_fresh(const struct range_request *request, struct counters *counters) {
  size_t bytes = request->granules << GRANULE_SHIFT;
  if (!commit_take(bytes)) return NO_GRANULE;
  size_t first = range_take_clean(request, counters);
  if (first == NO_GRANULE) {
    commit_give(bytes);
    return NO_GRANULE;
  }
  range_refuse_huge_at_ends(first, request->granules);
  range_offset_growth(arena_of(first), request->granules, counters);
  describe(first, true);
  return first;
}

/* ---- giving ---------------------------------------------------------------------------------- */

/* A range outside any arena is not taken again; its pages go at once. */
static COLD void give_pages_up(size_t first, size_t granules) {
  size_t bytes = granules << GRANULE_SHIFT;
  range_set_boundaries(first, granules, RANGE_BUSY);
  range_refuse_huge_at_ends(first, granules);
  if (os_purge((void *)granule_address(first), bytes)) commit_give(bytes);
}

RESIDENT static void give_part(size_t first, size_t granules, uint32_t stamp_ms,
                               struct counters *counters) {
  struct arena *arena = arena_of(first);
  if (UNLIKELY(!arena)) {
    give_pages_up(first, granules);
    return;
  }
  range_record(first)->info.stamp_ms = stamp_ms;
  arena_lock(arena, counters);
  arena_insert(arena, first, granules, RANGE_DIRTY);
  arena_unlock(arena);
  purge_want();
}

/* Gives the pages of a live range back at once, of which `held_bytes` are counted. False when the
 * system refuses. */
static COLD bool give_back_now(size_t first, size_t held_bytes, struct counters *counters) {
  if (!arena_of(first)) return false;
  enum range_kind now = range_give_back(first, RANGE_DIRTY, false);
  if (now == RANGE_DIRTY) return false;
  commit_give(held_bytes);
  range_put_back(first, now, range_info(first)->granules,
                 counters); /* UNMAPPED where the system has lost some of them */
  return true;
}

/* A free range is charged in full, since its next user may touch all of it. True if the limit
 * forbids that: they were purged. */
static COLD bool give_back_uncounted(size_t first, struct counters *counters) {
  struct range_info *info = range_info(first);
  size_t uncounted = range_uncounted_bytes(info);
  bool may_wait = commit_take_if_allowed(uncounted);
  range_set_uncounted(info, 0);
  if (may_wait) return false;
  if (give_back_now(first, ((size_t)info->granules << GRANULE_SHIFT) - uncounted, counters))
    return true;
  commit_settle(0, uncounted);
  return false;
}

/* `at_once`: its pages do not wait for their age, unless the system refuses. */
static void give(size_t first, bool at_once, uint32_t stamp_ms, struct counters *counters) {
  const struct range_info *info = range_info(first);
  size_t granules = info->granules;
  if (UNLIKELY(info->uncounted) && give_back_uncounted(first, counters)) return;
  if (UNLIKELY(at_once) && give_back_now(first, granules << GRANULE_SHIFT, counters)) return;
  give_part(first, granules, stamp_ms, counters);
}

/* A marked range is mapped anew, at once or when it is purged. */
void range_give(size_t granule, uint32_t stamp_ms, struct counters *counters) {
  bool is_marked = range_is_marked(granule);
  if (UNLIKELY(is_marked)) range_record(granule)->was_moved = true;
  give(granule, is_marked, stamp_ms, counters);
}

void range_give_lost(size_t granule, struct counters *counters) {
  struct range *head = range_record(granule);
  size_t bytes = (size_t)head->info.granules << GRANULE_SHIFT;
  if (!os_unmap((void *)granule_address(granule), bytes)) return; /* the addresses are lost */
  head->was_moved = head->info.is_closed = false;
  fetch_add_relaxed(&totals.purged_bytes, bytes);
  commit_give(bytes);
  range_put_back(granule, RANGE_UNMAPPED, head->info.granules, counters);
}

/* Its pages are gone already; strict overcommit still charges mapped memory. A range with a mapping
 * of its own gives its addresses back: it then needs no page tables, and no longer divides its
 * neighbours' mapping. */
void range_give_empty(size_t granule, struct counters *counters) {
  if (range_record(granule)->was_moved) {
    range_give_lost(granule, counters);
    return;
  }
  if (os_overcommit_is_strict()) {
    range_give(granule, (uint32_t)os_now_coarse_ms(), counters);
    return;
  }
  const struct range_info *info = range_info(granule);
  size_t given = info->is_closed ? info->granules : 0; /* else they were wiped */
  fetch_add_relaxed(&totals.purged_bytes, given << GRANULE_SHIFT);
  commit_give((size_t)info->granules << GRANULE_SHIFT);
  range_put_back(granule, RANGE_CLEAN, given, counters);
}

bool range_cut(size_t granule, size_t new_granules, struct counters *counters) {
  struct range *head = range_record(granule);
  size_t end = granule + head->info.granules, rest = granule + new_granules;
  if (!range_prepare_cut(granule, rest)) return false;
  struct arena *arena = arena_of(granule);
  if (LIKELY(arena)) arena_lock(arena, counters);
  range_set_boundaries(granule, new_granules, RANGE_LIVE);
  range_set_boundaries(rest, end - rest, RANGE_LIVE);
  range_record(rest)->was_moved = head->was_moved;
  range_record(rest)->info.is_closed = false;
  if (LIKELY(arena)) arena_unlock(arena);
  return true;
}

bool range_shrink(size_t granule, size_t new_granules, struct counters *counters) {
  struct range *head = range_record(granule);
  size_t cut_off = head->info.granules - new_granules;
  if (!cut_off) return true;
  bool is_marked = range_is_marked(granule);
  head->was_moved |= is_marked; /* its last page was inside the block so far, and proves nothing */
  if (!range_cut(granule, new_granules, counters)) return false;
  range_record(granule + new_granules)->info.uncounted = head->info.uncounted; /* at the end */
  head->info.uncounted = 0;
  bool is_much = cut_off >= CUT_OFF_MUCH_BYTES >> GRANULE_SHIFT;
  give(granule + new_granules, is_marked || is_much, (uint32_t)os_now_coarse_ms(), counters);
  return true;
}

/* Do at least `wanted` free granules of mapped kinds follow without a gap, and can they be cut off
 * there? *clean becomes the number of those without pages. */
static bool are_free_at(size_t granule, size_t wanted, struct arena *arena, size_t *clean,
                        struct counters *counters) {
  *clean = 0;
  for (size_t found = 0; found < wanted;) {
    const struct range *next = arena_free_at(arena, granule + found, RANGE_DIRTY, RANGE_CLEAN);
    if (!next) return false;
    size_t has = next->info.granules, rest = wanted - found, begin = granule + found;
    if (has > rest && UNLIKELY(!range_may_cut(begin, begin + rest))) {
      if (!arena_prepare_cut(arena, begin, begin, begin + rest, counters)) return false;
      *clean = found = 0; /* from the beginning: others may have changed it */
      continue;
    }
    if (next->kind == RANGE_CLEAN) *clean += has < rest ? has : rest;
    found += has;
  }
  return true;
}

static bool extend(size_t granule, size_t new_granules, struct counters *counters) {
  size_t granules = range_record(granule)->info.granules, end = granule + granules;
  size_t more = new_granules - granules, clean;
  struct arena *arena = arena_of(granule);
  if (UNLIKELY(!arena)) return false;
  arena_lock(arena, counters);
  bool is_extended =
      are_free_at(end, more, arena, &clean, counters) && commit_take(clean << GRANULE_SHIFT);
  if (is_extended) {
    for (size_t taken = 0; taken < more;)
      taken += absorb(arena, granule, end + taken, more - taken);
    range_set_boundaries(granule, new_granules, RANGE_LIVE);
  }
  arena_unlock(arena);
  if (!is_extended) return false;
  owner_map_clear(end, more);
  if (clean) range_refuse_huge_at_ends(granule, new_granules);
  range_offset_growth(arena, clean, counters);
  return true;
}

/* Else each step of a block that grows by small ones moves its pages, which become one mapping
 * more. */
#define GROWING_MIN_GRANULES ((size_t)4 << 20 >> GRANULE_SHIFT)

bool range_extend(size_t granule, size_t new_granules, struct counters *counters) {
  if (extend(granule, new_granules, counters)) return true;
  size_t granules = range_record(granule)->info.granules;
  return granules >= GROWING_MIN_GRANULES && arena_of(granule) &&
         range_add_behind(granule + granules, new_granules - granules, counters) &&
         extend(granule, new_granules, counters);
}

void range_note_moved(size_t granule) { range_record(granule)->was_moved = true; }
