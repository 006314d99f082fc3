#include "ranges/range_purge.h"

#include "map/commit.h"
#include "map/huge.h"
#include "os/os.h"
#include "purge/purge_credit.h"

/* Ranges given back before the next are looked for. */
enum { PURGE_BATCH = 32 };

void range_put_back(size_t first, enum range_kind kind, size_t purged, struct counters *counters) {
  struct arena *arena = arena_of(first);
  if (UNLIKELY(!arena)) return; /* it has no pages, and is never taken again */
  arena_lock(arena, counters);
  range_record(first)->info.purged = (uint32_t)purged;
  arena_insert(arena, first, range_record(first)->info.granules, kind);
  arena_unlock(arena);
}

void range_divide(size_t first, size_t part, struct counters *counters) {
  struct range *head = range_record(first), *rest = range_record(first + part);
  size_t granules = head->info.granules;
  struct arena *arena = arena_of(first);
  arena_lock(arena, counters);
  range_set_boundaries(first, part, RANGE_BUSY);
  range_set_boundaries(first + part, granules - part, RANGE_BUSY);
  rest->was_moved = head->was_moved;
  rest->info.is_closed = head->info.is_closed;
  rest->info.stamp_ms = head->info.stamp_ms;
  arena_unlock(arena);
}

/* Extracts a batch of free ranges of the kind that are due; they are BUSY meanwhile. */
static unsigned collect_due(struct purge *purge, struct arena *arena, enum range_kind kind,
                            uint32_t batch[PURGE_BATCH]) {
  unsigned found = 0;
  uint32_t next = set_of(arena, kind)->oldest;
  for (uint32_t at; (at = next) != NO_RANGE;) {
    const struct range_info *info = &range_record(at)->info;
    next = range_record(at)->younger;
    if (found == PURGE_BATCH || !purge_is_due(purge, info->stamp_ms)) break;
    arena_extract(arena, at);
    batch[found++] = at;
  }
  return found;
}

/* Counts pages that were resident and that os_purge does not count. */
static void count_given(size_t bytes, enum range_kind kind) {
  if (kind == RANGE_DIRTY) fetch_add_relaxed(&totals.purged_bytes, bytes);
}

/* For the range that begins at `head`, or a part of it. */
static enum range_kind give_part_back(struct range *head, size_t first, size_t granules,
                                      enum range_kind kind, bool give_addresses) {
  void *address = (void *)granule_address(first);
  size_t bytes = granules << GRANULE_SHIFT;
  if (give_addresses && os_unmap(address, bytes)) {
    head->was_moved = head->info.is_closed = false;
    count_given(bytes, kind);
    return RANGE_UNMAPPED;
  }
  enum os_change remapped = head->was_moved ? os_remap(address, bytes) : OS_REFUSED;
  if (remapped != OS_REFUSED) {
    head->was_moved = head->info.is_closed = false;
    count_given(bytes, kind);
    if (remapped == OS_DONE) {
      range_keep_huge_out(first, granules);
      return RANGE_CLEAN;
    }
    return os_unmap(address, bytes) ? RANGE_UNMAPPED : kind; /* the remaining state */
  }
  if (kind == RANGE_CLEAN) return kind; /* the system refused its addresses */
  range_refuse_huge_at_ends(first, granules);
  return os_purge(address, bytes) ? RANGE_CLEAN : kind;
}

enum range_kind range_give_back(size_t first, enum range_kind kind, bool give_addresses) {
  struct range *head = range_record(first);
  return give_part_back(head, first, head->info.granules, kind, give_addresses);
}

/* Where time is bounded, one call gives back 1 MiB, or 2 where huge pages are: 40 to 160 us each if
 * it is resident. It gives back four times as much while calls are quick, because next to nothing
 * is resident: at most 4 MiB of 1 GiB, 1 GiB of 16 GiB. */
enum { QUICK_NS = 40000, QUICK_FACTOR = 4, SPARSE_SHIFT = 22 };

static size_t end_of_part(const struct purge *purge, size_t at, size_t end, size_t wanted) {
  size_t unit = GRANULES_PER_CHUNK / (huge_is_default() ? 1 : 2);
  size_t part_end = purge->end_ns ? ((at + wanted) / unit + 1) * unit : end;
  return part_end < end ? part_end : end;
}

/* The kind of two neighbouring parts together: UNMAPPED, if one of them is. If the other stays
 * mapped, its next user finds it occupied. */
static enum range_kind kind_of_both(size_t first, enum range_kind now, size_t at,
                                    enum range_kind given, size_t end) {
  if (now == given || at == first) return given;
  size_t mapped = given == RANGE_UNMAPPED ? first : at, mapped_end = mapped == at ? end : at;
  os_unmap((void *)granule_address(mapped), (mapped_end - mapped) << GRANULE_SHIFT);
  return RANGE_UNMAPPED;
}

/* Gives an extracted range back from its beginning until time is up or the system refuses.  Returns
 * where that part ends, at which the range may be cut; *now is the part's kind. */
static size_t give_parts_back(struct purge *purge, size_t first, enum range_kind kind,
                              enum range_kind *now) {
  struct range *head = range_record(first);
  const bool was_moved = head->was_moved;
  size_t granules = head->info.granules, end = first + granules, at = first, wanted = 0;
  const size_t most = granules * granules >> SPARSE_SHIFT;
  do {
    size_t part_end = end_of_part(purge, at, end, wanted < most ? wanted : most);
    uint64_t start_ns = purge->end_ns ? os_now_ns() : 0;
    head->was_moved = was_moved;
    enum range_kind given = give_part_back(head, at, part_end - at, kind, purge->give_addresses);
    bool is_quick = purge->end_ns && os_now_ns() - start_ns < QUICK_NS;
    purge_note_call(purge);
    if (given == kind) break;
    *now = kind_of_both(first, *now, at, given, part_end);
    purge_account(purge, (part_end - at) << GRANULE_SHIFT);
    wanted = is_quick ? QUICK_FACTOR * (part_end - at) : 0;
    at = part_end;
  } while (at < end && (purge_may_go_on(purge) || !range_prepare_cut(first, at)));
  if (at == first || range_prepare_cut(first, at)) return at;
  return *now == RANGE_UNMAPPED ? end : first; /* without records for a cut all of it is one kind */
}

/* True if any page was purged. The rest is stamped as freed just now, so that other ranges are
 * tried first. */
static bool give_back_one(struct purge *purge, size_t first, enum range_kind kind,
                          struct counters *counters) {
  struct range *head = range_record(first);
  const bool was_moved = head->was_moved;
  size_t whole_end = first + head->info.granules;
  enum range_kind now = kind;
  size_t end = give_parts_back(purge, first, kind, &now), bytes = (end - first) << GRANULE_SHIFT;
  if (!bytes) {
    head->info.stamp_ms = (uint32_t)os_now_coarse_ms();
    range_put_back(first, kind, head->info.purged, counters);
    return false;
  }
  if (end < whole_end) {
    purge->work_remains = true;
    purge->is_cut |= !purge_may_go_on(purge);
    range_divide(first, end - first, counters);
    range_record(end)->was_moved = was_moved;
    range_put_back(end, kind, 0, counters);
  }
  if (kind == RANGE_DIRTY) commit_give(bytes);
  range_put_back(first, now, kind == RANGE_DIRTY ? end - first : head->info.purged, counters);
  return true;
}

/* True when the system took any. Ranges that time did not allow for are as before. */
static bool give_back_batch(struct purge *purge, uint32_t *batch, unsigned found,
                            enum range_kind kind, struct counters *counters) {
  bool is_taken = false;
  for (unsigned index = 0; index < found; index++) {
    if (purge_may_go_on(purge)) {
      is_taken |= give_back_one(purge, batch[index], kind, counters);
    } else {
      purge->work_remains = purge->is_cut = true;
      range_put_back(batch[index], kind, range_record(batch[index])->info.purged, counters);
    }
  }
  return is_taken;
}

/* Gives one batch back; false when it was the last, or when the system took none of it: the next
 * would be the same ranges again. */
static bool purge_batch(struct purge *purge, struct arena *arena, enum range_kind kind,
                        struct counters *counters) {
  uint32_t batch[PURGE_BATCH];
  arena_lock(arena, counters);
  unsigned found = collect_due(purge, arena, kind, batch);
  arena_unlock(arena);
  bool is_taken = give_back_batch(purge, batch, found, kind, counters);
  purge->work_remains |= found == PURGE_BATCH || (found && !is_taken);
  return is_taken && found == PURGE_BATCH;
}

/* Extracts DIRTY ranges, the largest first, that have `granules` at most; they are BUSY
 * meanwhile. */
static unsigned collect_largest(struct arena *arena, size_t granules, uint32_t batch[PURGE_BATCH]) {
  const struct range_set *set = set_of(arena, RANGE_DIRTY);
  unsigned found = 0;
  for (unsigned bin = bin_of(granules) + 1; bin-- > 0;) {
    for (uint32_t at = set->bins[bin], next; at != NO_RANGE; at = next) {
      next = range_record(at)->next;
      if (range_record(at)->info.granules > granules) continue;
      granules -= range_record(at)->info.granules;
      arena_extract(arena, at);
      batch[found++] = at;
      if (!granules || found == PURGE_BATCH) return found;
    }
  }
  return found;
}

/* The process has grown by `granules` although much is free, but nothing that fits. A range
 * slightly too small was of no use now, and probably will not be next time. */
static NOINLINE void give_back_instead(struct arena *arena, size_t granules,
                                       struct counters *counters) {
  uint32_t batch[PURGE_BATCH];
  if (purge_credit() < (int64_t)(granules << GRANULE_SHIFT)) return;
  struct purge purge = PURGE_EVERYTHING;
  purge.end_ns = os_now_ns() + PURGE_STEP_NS;
  purge.give_addresses = os_overcommit_is_strict();
  arena_lock(arena, counters);
  unsigned found = collect_largest(arena, granules, batch);
  arena_unlock(arena);
  give_back_batch(&purge, batch, found, RANGE_DIRTY, counters);
  purge_credit_spend(purge.purged_bytes);
}

RESIDENT void range_offset_growth(struct arena *arena, size_t granules, struct counters *counters) {
  if (granules && arena_granules_of(arena, RANGE_DIRTY))
    give_back_instead(arena, granules, counters);
}

static void purge_arena(struct purge *purge, struct arena *arena, enum range_kind kind,
                        struct counters *counters) {
  while (purge_batch(purge, arena, kind, counters)) {
  }
}

/* Starts with another arena each time: a round may end before the last. */
void range_purge(struct purge *purge, struct counters *counters) {
  bool asked_for_addresses = purge->give_addresses;
  purge->give_addresses |= os_overcommit_is_strict();
  for (unsigned step = 0; step < ARENA_COUNT; step++) {
    struct arena *arena = &arenas[(purge->now_ms + step) % ARENA_COUNT];
    if (arena_granules_of(arena, RANGE_DIRTY)) purge_arena(purge, arena, RANGE_DIRTY, counters);
    if (asked_for_addresses && arena_granules_of(arena, RANGE_CLEAN))
      purge_arena(purge, arena, RANGE_CLEAN, counters);
  }
  purge->give_addresses = asked_for_addresses;
}
