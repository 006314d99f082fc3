#include "ranges/range_magazine.h"

#include "map/metadata.h"
#include "report/report.h"

/* Magazines closed, and emptied, at a time; a step of a round ends with them. A thread that is
 * about to grow empties fewer magazines, and at most RANGES_A_MERGE ranges. */
enum { CLOSED_AT_ONCE = 64, CLOSED_A_MERGE = 16, RANGES_A_MERGE = 64 };

static ATOMIC(struct range_magazines *) all;

/* Magazines that may hold ranges: those that joined since the last visit began, and the rest of
 * that visit. */
static ATOMIC(struct range_magazines *) joined;
static struct lock visit_lock;                   /* of the lowest rank */
static ATOMIC(struct range_magazines *) visited; /* written under the lock */
static THREAD_LOCAL uint8_t own_visits; /* of the lists, those that a signal interrupts, too */

void range_magazines_share(void) {
  if (load_relaxed(&all)) biased_share(true);
}

RESIDENT struct range_magazines *range_magazines_make(void) {
  struct range_magazines *magazines = metadata_allocate(sizeof *magazines);
  struct range_magazines *head = load_relaxed(&all);
  if (!magazines) return NULL;
  if (!head && os_is_multi_threaded()) biased_share(false);
  do magazines->next = head;
  /* release: its contents; pairs with empty_all. */
  while (!cas_weak_acq_rel(&all, &head, magazines));
  return magazines;
}

COLD void range_magazine_found_another(size_t granule, unsigned class) {
  struct block_description block = {.base = range_block(granule),
                                    .block_bytes = class_bytes(class),
                                    .tier = class_tier_name(class),
                                    .class_number = class};
  report_double_free("free", block.base, &block);
}

uint64_t range_magazines_bytes(void) {
  uint64_t bytes = 0;
  /* acquire: pairs with range_magazines_make. */
  for (struct range_magazines *at = load_acquire(&all); at; at = at->next)
    bytes += load_relaxed(&at->bytes);
  return bytes;
}

/* Two threads may have freed it at once: one of them gives it back. */
static bool leave_magazine(size_t granule, unsigned class) {
  uint32_t entry = map_entry(MAP_TAG_NONE, class);
  /* acq_rel: one of two such threads loses; orders nothing else. */
  if (!cas_strong_acq_rel(&window.owner_map[granule], &entry,
                          map_entry(MAP_TAG_NONE, MAP_CLASS_BIG))) {
    range_magazine_found_another(granule, class);
    return false;
  }
  fetch_sub_relaxed(&totals.large_live_bytes, class_bytes(class));
  return true;
}

/* The first of some slots of a class, `most` of them at most. */
struct emptying {
  struct range_row row;
  unsigned class, most;
};

RESIDENT static unsigned empty_row(struct range_magazines *magazines, struct emptying what,
                                   struct purge *purge, struct counters *counters) {
  unsigned class = what.class, ranges = 0;
  uint32_t *end = what.row.slots + what.row.count;
  for (uint32_t *slot = what.row.slots; slot < end && ranges < what.most; slot++) {
    size_t granule = (size_t)*slot - 1;
    if (!*slot || !purge_is_due(purge, range_info(granule)->stamp_ms)) continue;
    *slot = 0;
    add_single_writer(&magazines->bytes, (uint64_t)0 - class_bytes(class));
    if (leave_magazine(granule, class)) range_cache_give(granule, class, counters);
    ranges++;
  }
  return ranges;
}

/* Empties at most that number; returns how many. */
RESIDENT static unsigned empty_rows(struct range_magazines *magazines, unsigned most,
                                    struct purge *purge, struct counters *counters) {
  unsigned ranges = 0;
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++) {
    if (!load_relaxed(&magazines->bytes) || ranges == most) break;
    uint32_t *slots = magazines->slots[class - SLAB_CLASS_COUNT];
    struct emptying whole = {{slots, RANGE_ROW_SLOTS}, class, most - ranges};
    ranges += empty_row(magazines, whole, purge, counters);
  }
  return ranges;
}

unsigned range_magazine_flush(struct range_magazines *magazines, unsigned class, size_t granule,
                              struct counters *counters) {
  struct purge everything = PURGE_EVERYTHING;
  struct range_row row = range_magazine_row(magazines, class, range_info(granule)->end);
  struct emptying half = {row, class, row.count / 2};
  if (!biased_take(&magazines->lock)) return 0;
  unsigned ranges = empty_row(magazines, half, &everything, counters);
  biased_give(&magazines->lock);
  return ranges;
}

RESIDENT void range_magazines_flush(struct range_magazines *magazines, struct counters *counters) {
  struct purge everything = PURGE_EVERYTHING;
  if (!load_relaxed(&magazines->bytes) || !biased_take(&magazines->lock)) return;
  empty_rows(magazines, UINT_MAX, &everything, counters);
  biased_give(&magazines->lock);
}

void range_magazine_fill(struct range_magazines *magazines, unsigned class, const size_t *granules,
                         unsigned ranges, struct counters *counters) {
  for (; ranges--; granules++) {
    if (range_magazine_keep(magazines, class, range_info(*granules)->end, *granules))
      fetch_add_relaxed(&totals.large_live_bytes, class_bytes(class));
    else
      range_cache_give(*granules, class, counters);
  }
}

/* ---- emptying others' ------------------------------------------------------------------------ */

struct closed {
  struct range_magazines *magazines[CLOSED_AT_ONCE];
  unsigned count;
  bool are_listed; /* they were listed, and are in no list now */
};

RESIDENT static void list(struct range_magazines *magazines) {
  struct range_magazines *head = load_relaxed(&joined);
  do magazines->next_listed = head;
  while (!cas_weak_acq_rel(&joined, &head, magazines)); /* release: the link, to close_listed */
}

RESIDENT void range_magazines_join(struct range_magazines *magazines) {
  own_visits++;
  keep_store_order();
  magazines->is_listed = true;
  list(magazines);
  keep_store_order();
  own_visits--;
}

/* Closes them before they leave the list, and lists them before they are opened: so a forked child
 * sees which were in hand. False while another thread does so. */
static bool close_listed(struct closed *closed, const struct range_magazines *own, unsigned most) {
  closed->are_listed = true;
  if (!lock_try(&visit_lock)) return false;
  struct range_magazines *at = load_relaxed(&visited), *next;
  if (!at) at = exchange_acquire(&joined, NULL); /* acquire: the links; pairs with list */
  for (; at && most; most--, at = next) {
    next = at->next_listed;
    if (at != own && biased_close(&at->lock))
      closed->magazines[closed->count++] = at;
    else
      list(at);
  }
  store_relaxed(&visited, at);
  lock_give(&visit_lock);
  return true;
}

static void empty_closed(struct closed *closed, unsigned ranges_max, struct purge *purge,
                         struct counters *counters) {
  bool is_seen = closed->count && biased_are_closed();
  for (unsigned index = 0; index < closed->count; index++) {
    struct range_magazines *at = closed->magazines[index];
    bool is_ours = is_seen && biased_is_left(&at->lock);
    if (is_ours)
      ranges_max -= empty_rows(at, ranges_max, purge, counters);
    else
      purge->work_remains = true;
    if (closed->are_listed && is_ours && !load_relaxed(&at->bytes))
      at->is_listed = false;
    else if (closed->are_listed)
      list(at);
    biased_open(&at->lock);
  }
}

/* A step: visits those that may hold ranges, but for `own`, whatever the number of others. */
static void empty_listed(const struct range_magazines *own, unsigned most, unsigned ranges_max,
                         struct purge *purge, struct counters *counters) {
  struct closed closed = {.count = 0};
  own_visits++;
  keep_store_order();
  if (!close_listed(&closed, own, most)) purge->work_remains = true;
  empty_closed(&closed, ranges_max, purge, counters);
  keep_store_order();
  own_visits--;
}

/* All magazines ever made, some at a time. */
static void empty_all(struct purge *purge, struct counters *counters) {
  struct range_magazines *at = load_acquire(&all); /* pairs with range_magazines_make */
  while (at) {
    struct closed closed = {.count = 0};
    for (; at && closed.count < CLOSED_AT_ONCE; at = at->next)
      if (load_relaxed(&at->bytes) && biased_close(&at->lock))
        closed.magazines[closed.count++] = at;
    empty_closed(&closed, UINT_MAX, purge, counters);
  }
}

/* A round in parts is followed by one more: ranges too young in the parts before are not
 * recorded. */
void range_magazines_purge(struct purge *purge, struct counters *counters) {
  if (purge_is_bounded(purge)) {
    purge->work_remains |= load_relaxed(&visited) != NULL;
    empty_listed(NULL, CLOSED_AT_ONCE, UINT_MAX, purge, counters);
    if (load_relaxed(&visited)) purge->work_remains = purge->is_cut = true;
  } else {
    empty_all(purge, counters);
  }
  range_cache_purge(purge, counters);
}

/* Other threads need the ranges that they keep, and lose some each time that the process is about
 * to grow by this much. */
enum { VISIT_EVERY_BYTES = 1 << 20 };

static bool is_turn_of_others(size_t bytes) {
  static ATOMIC(uint64_t) asked_bytes; /* relaxed: it only counts */
  uint64_t before = fetch_add_relaxed(&asked_bytes, bytes);
  return before / VISIT_EVERY_BYTES != (before + bytes) / VISIT_EVERY_BYTES;
}

RESIDENT bool range_magazines_merge(struct range_magazines *own, size_t bytes,
                                    struct counters *counters) {
  struct purge everything = PURGE_EVERYTHING;
  if (!load_relaxed(&all)) return false; /* no thread has freed a Large block yet */
  bool is_for_all = is_turn_of_others(bytes) && !os_is_guest(); /* it would leave them closed */
  if (is_for_all) empty_listed(own, CLOSED_A_MERGE, RANGES_A_MERGE, &everything, counters);
  if (density_is_low()) return is_for_all;
  if (own) range_magazines_flush(own, counters);
  range_cache_purge(&everything, counters);
  return true;
}

/* A thread that was cut off may have written one of the two. */
static uint64_t bytes_in_rows(const struct range_magazines *magazines) {
  uint64_t bytes = 0;
  for (unsigned row = 0; row < LARGE_CLASS_COUNT; row++)
    for (unsigned slot = 0; slot < RANGE_ROW_SLOTS; slot++)
      if (magazines->slots[row][slot]) bytes += class_bytes(SLAB_CLASS_COUNT + row);
  return bytes;
}

/* Magazines that another thread had in hand, or was about to list, may be in no list. (While this
 * thread holds them they stay as they are: ranges that they lost are found by a round without
 * bounds.) */
static void list_anew(void) {
  store_relaxed(&joined, NULL);
  store_relaxed(&visited, NULL);
  for (struct range_magazines *at = load_relaxed(&all); at; at = at->next)
    if ((at->is_listed = load_relaxed(&at->bytes) != 0)) list(at);
}

/* A page is copied only if written. */
void range_magazines_after_fork(void) {
  range_cache_after_fork();
  bool is_cut_off = lock_reset_in_child(&visit_lock);
  for (struct range_magazines *at = load_relaxed(&all); at; at = at->next) {
    if (!biased_reset_in_child(&at->lock)) continue;
    store_relaxed(&at->bytes, bytes_in_rows(at));
    is_cut_off = true;
  }
  if (is_cut_off && !own_visits) list_anew();
}
