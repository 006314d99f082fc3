#include "ranges/range_cache.h"

#include "config/limits.h"

enum { ROW_SLOTS = 512, SITE_PROBES = 8 };
/* The most bytes in a row; where blocks are mostly untouched all its slots. */
#define ROW_BYTES ((uint64_t)1 << 20)

RARE_DATA static struct row {
  CACHE_ALIGNED struct lock lock;
  ATOMIC(uint32_t) count; /* under the lock; read without it as a hint */
  uint64_t words[ROW_SLOTS];
} rows[LARGE_CLASS_COUNT];

static struct row *row_of(unsigned class) { return &rows[class - SLAB_CLASS_COUNT]; }

static uint64_t extract(struct row *row, uint32_t at) {
  uint32_t last = load_relaxed(&row->count) - 1;
  uint64_t word = row->words[at];
  row->words[at] = row->words[last];
  store_relaxed(&row->count, last);
  return word;
}

/* Both in one word, to be compared at once. */
static uint32_t site_and_end(uint32_t site, uint32_t end) {
  return (site & ~(RANGE_ENDS - 1u)) | end;
}

/* The youngest of the last `probes` whose site and end equal these in the bits of the mask, or
 * NO_PLACE. */
#define NO_PLACE UINT32_MAX
static uint32_t youngest(const struct row *row, uint32_t wanted, uint32_t mask, uint32_t probes) {
  uint32_t count = load_relaxed(&row->count), last = count > probes ? count - probes : 0;
  for (uint32_t at = count; at-- > last;)
    if (!(((uint32_t)(row->words[at] >> 32) ^ wanted) & mask)) return at;
  return NO_PLACE;
}

/* Among the youngest few, the first from the same call site, else the youngest. */
static uint32_t place_of(const struct row *row, const struct range_wish *wish) {
  uint32_t wanted = site_and_end(wish->site, wish->end);
  uint32_t end_mask = load_relaxed(&density_end_mask), mask = site_and_end(UINT32_MAX, end_mask);
  uint32_t at = youngest(row, wanted, mask, SITE_PROBES);
  return at != NO_PLACE ? at : youngest(row, wanted, end_mask, ROW_SLOTS);
}

RESIDENT unsigned range_cache_take(const struct range_wish *wish, size_t *granules, unsigned most,
                                   struct counters *counters) {
  struct row *row = row_of(wish->class);
  unsigned taken = 0;
  if (!load_relaxed(&row->count)) return 0;
  lock_take(&row->lock, counters);
  for (uint32_t at; taken < most && (at = place_of(row, wish)) != NO_PLACE;)
    granules[taken++] = (uint32_t)extract(row, at);
  lock_give(&row->lock);
  return taken;
}

static uint32_t slots_of(unsigned class) {
  return density_is_low() ? ROW_SLOTS : (uint32_t)(limits_budget(ROW_BYTES) / class_bytes(class));
}

RESIDENT static bool put(size_t granule, unsigned class, struct counters *counters) {
  struct row *row = row_of(class);
  const struct range_info *info = range_info(granule);
  uint64_t word = (uint64_t)site_and_end(load_relaxed(&info->site), info->end) << 32 | granule;
  if (load_relaxed(&row->count) >= slots_of(class)) return false;
  lock_take(&row->lock, counters);
  uint32_t count = load_relaxed(&row->count);
  bool has_room = count < ROW_SLOTS;
  if (has_room) row->words[count] = word;
  if (has_room) store_relaxed(&row->count, count + 1);
  lock_give(&row->lock);
  return has_room;
}

RESIDENT void range_cache_give(size_t granule, unsigned class, struct counters *counters) {
  density_note(granule);
  if (put(granule, class, counters))
    purge_want(); /* last: a round that begins from here on finds the range */
  else
    range_give(granule, range_info(granule)->stamp_ms, counters);
}

/* ---- emptying -------------------------------------------------------------------------------- */

enum { PURGE_BATCH = 32 };

static unsigned collect_due(struct row *row, struct purge *purge, size_t batch[PURGE_BATCH]) {
  unsigned found = 0;
  for (uint32_t at = load_relaxed(&row->count); at-- && found < PURGE_BATCH;)
    if (purge_is_due(purge, range_info((uint32_t)row->words[at])->stamp_ms))
      batch[found++] = (uint32_t)extract(row, at);
  return found;
}

static void purge_row(struct row *row, struct purge *purge, struct counters *counters) {
  size_t batch[PURGE_BATCH];
  unsigned found = PURGE_BATCH;
  while (load_relaxed(&row->count) && found == PURGE_BATCH) {
    lock_take(&row->lock, counters);
    found = collect_due(row, purge, batch);
    lock_give(&row->lock);
    for (unsigned index = 0; index < found; index++)
      range_give(batch[index], range_info(batch[index])->stamp_ms, counters);
  }
}

void range_cache_purge(struct purge *purge, struct counters *counters) {
  for (struct row *row = rows; row < rows + LARGE_CLASS_COUNT; row++)
    purge_row(row, purge, counters);
}

/* ---- fork ------------------------------------------------------------------------------------ */

void range_cache_after_fork(void) {
  for (struct row *row = rows; row < rows + LARGE_CLASS_COUNT; row++)
    if (lock_reset_in_child(&row->lock)) store_relaxed(&row->count, 0);
}
