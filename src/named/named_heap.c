#include "named/named_heap.h"

#include <string.h>

#include "base/text.h"
#include "cache/heap.h"
#include "map/metadata.h"
#include "slab/adopt.h"
#include "slab/pending.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* Records by number: the owner map holds a heap's number. */
RARE_DATA ATOMIC(struct named_row *) named_rows[NAMED_ROWS];
static struct lock heaps_lock = {.rank = LOCK_RANK_NAMED};
static uint32_t first_group; /* groups below it have no free number; under the lock */
static uint64_t serials;     /* given so far; under the lock */

enum { GROUP_HEAPS = 64 };
static const size_t group_bytes = GROUP_HEAPS * sizeof(struct hak_heap);
static uint32_t group_of(uint32_t number) { return number / GROUP_HEAPS; }

struct hak_heap *named_next(uint32_t *number) {
  for (uint32_t at = *number + 1; at < NAMED_NUMBERS; at = (at | (GROUP_HEAPS - 1)) + 1) {
    /* acquire, all three: the earlier writes of publish and take_number. */
    struct named_row *row = load_acquire(&named_rows[at / NAMED_ROW_HEAPS]);
    if (!row) return NULL; /* rows are made one after the other */
    uint64_t in_use =
        load_acquire(&row->in_use[group_of(at) % NAMED_ROW_GROUPS]) >> at % GROUP_HEAPS;
    if (!in_use) continue;
    *number = at + lowest_bit(in_use);
    return load_acquire(&row->heaps[*number % NAMED_ROW_HEAPS]);
  }
  return NULL;
}

/* The row of a group, under the lock; NULL without memory. */
static struct named_row *row_of(uint32_t group) {
  ATOMIC(struct named_row *) *place = &named_rows[group / NAMED_ROW_GROUPS];
  struct named_row *row = load_relaxed(place);
  if (row) return row;
  row = metadata_allocate(sizeof *row);
  if (!row) return NULL;
  store_relaxed(&row->in_use[0], group == 0); /* number 0 is never given */
  store_release(place, row);                  /* that, and zeros; pairs with named_of_entry */
  return row;
}

/* The first number that is not in use; 0 without memory, or when all numbers are in use. */
static uint32_t find_number(void) {
  for (; first_group < NAMED_NUMBERS / GROUP_HEAPS; first_group++) {
    const struct named_row *row = row_of(first_group);
    if (!row) return 0;
    uint64_t free_bits = ~load_relaxed(&row->in_use[first_group % NAMED_ROW_GROUPS]);
    if (free_bits) return first_group * GROUP_HEAPS + lowest_bit(free_bits);
  }
  return 0;
}

/* Records of the first group are made one by one, as most programs have few; later ones as a group,
 * whose pages can be purged together. */
static bool make_records(struct named_row *row, uint32_t number) {
  uint32_t first = number < GROUP_HEAPS ? number : number - number % GROUP_HEAPS;
  uint32_t count = number < GROUP_HEAPS ? 1 : GROUP_HEAPS;
  struct hak_heap *records = metadata_allocate(count * sizeof *records);
  for (uint32_t index = 0; records && index < count; index++) /* zeros; pairs with named_next */
    store_release(&row->heaps[(first + index) % NAMED_ROW_HEAPS], &records[index]);
  return records;
}

/* Purged records of the group are committed again. */
static bool is_usable(struct named_row *row, uint32_t group) {
  struct named_group *state = &row->groups[group % NAMED_ROW_GROUPS];
  if (LIKELY(!state->purged_bytes)) return true;
  if (!metadata_take_again(state->purged_bytes)) return false;
  state->purged_bytes = 0;
  return true;
}

/* Under the lock: takes a record, which is in use from now on; NULL without memory. */
static struct hak_heap *take_record(void) {
  uint32_t number = find_number(), group = group_of(number);
  if (!number) return NULL;
  struct named_row *row = row_of(group);
  ATOMIC(struct hak_heap *) *place = &row->heaps[number % NAMED_ROW_HEAPS];
  if (!load_relaxed(place) && !make_records(row, number)) return NULL;
  if (!is_usable(row, group)) return NULL;
  struct hak_heap *heap = load_relaxed(place);
  if (heap->owner.number != number) { /* not at each use: a round that is late reads them */
    heap->owner.number = number;
    heap->owner.tag = MAP_TAG_NAMED | number << MAP_TAG_SHIFT | window.hardened_bit;
  }
  heap->serial = ++serials;
  ATOMIC(uint64_t) *in_use = &row->in_use[group % NAMED_ROW_GROUPS];
  /* release: the record and its number; pairs with named_next. */
  store_release(in_use, load_relaxed(in_use) | UINT64_C(1) << number % GROUP_HEAPS);
  return heap;
}

/* Under the lock. */
static void put_record(const struct hak_heap *heap, bool is_kept) {
  uint32_t number = heap->owner.number, group = group_of(number);
  struct named_row *row = load_relaxed(&named_rows[number / NAMED_ROW_HEAPS]);
  ATOMIC(uint64_t) *in_use = &row->in_use[group % NAMED_ROW_GROUPS];
  struct named_group *state = &row->groups[group % NAMED_ROW_GROUPS];
  /* relaxed, under the lock: a late walk sees the record's own state. */
  store_relaxed(in_use, load_relaxed(in_use) & ~(UINT64_C(1) << number % GROUP_HEAPS));
  state->is_kept |= is_kept;
  state->free_since_ms = (uint32_t)os_now_coarse_ms();
  if (group < first_group) first_group = group;
}

/* ---- purging of records ---------------------------------------------------------------------- */

/* Takes all records of a group that is wholly unused, and old enough; no system call is done under
 * the lock. */
static bool hold_group(struct purge *purge, struct named_row *row, unsigned place) {
  struct named_group *state = &row->groups[place];
  lock_take(&heaps_lock, &stray_counters);
  bool is_free = !load_relaxed(&row->in_use[place]) && !state->purged_bytes && !state->is_kept &&
                 load_relaxed(&row->heaps[place * GROUP_HEAPS]) &&
                 purge_is_due(purge, state->free_since_ms);
  if (is_free) store_relaxed(&row->in_use[place], UINT64_MAX); /* no thread takes one meanwhile */
  lock_give(&heaps_lock);
  return is_free;
}

static void purge_group(struct purge *purge, struct named_row *row, unsigned place) {
  if (!hold_group(purge, row, place)) return;
  size_t bytes = metadata_purge(load_relaxed(&row->heaps[place * GROUP_HEAPS]), group_bytes);
  purge_note_call(purge);
  purge_account(purge, bytes);
  fetch_add_relaxed(&totals.purged_bytes, bytes);
  lock_take(&heaps_lock, &stray_counters);
  row->groups[place].purged_bytes = (uint32_t)bytes;
  row->groups[place].is_kept = !bytes;   /* refused: not tried again */
  store_relaxed(&row->in_use[place], 0); /* as put_record */
  lock_give(&heaps_lock);
}

void named_purge(struct purge *purge) {
  for (uint32_t group = 1; group < NAMED_NUMBERS / GROUP_HEAPS; group++) {
    /* acquire: the row; pairs with row_of. */
    struct named_row *row = load_acquire(&named_rows[group / NAMED_ROW_GROUPS]);
    if (!row) return;
    if (!load_relaxed(&row->in_use[group % NAMED_ROW_GROUPS])) /* asked again under the lock */
      purge_group(purge, row, group % NAMED_ROW_GROUPS);
  }
}

/* ---- records --------------------------------------------------------------------------------- */

/* A reader from outside may see a mixture for a moment; it always ends. */
void named_set_name(struct hak_heap *heap, const char *name) {
  struct text text;
  memset(heap->name, 0, sizeof heap->name);
  text_init(&text, heap->name, sizeof heap->name - 1);
  if (name)
    text_string(&text, name);
  else
    text_format(&text, "heap %u", heap->owner.number);
}

static void forget_figures(struct hak_heap *heap) {
  ATOMIC(uint64_t) *const figures[] = {
      &heap->allocated_blocks, &heap->freed_remotely, &heap->freed_blocks,
      &heap->range_bytes,      &heap->range_blocks,   &heap->peak_bytes,
      &heap->limit_bytes,      &heap->refusals,       &heap->tag};
  for (unsigned which = 0; which < sizeof figures / sizeof figures[0]; which++)
    store_relaxed(figures[which], 0);
}

struct hak_heap *named_make(enum named_state state, const char *name) {
  lock_take(&heaps_lock, &stray_counters);
  struct hak_heap *heap = take_record();
  lock_give(&heaps_lock);
  if (!heap) return NULL;
  forget_figures(heap);
  named_set_name(heap, name);
  heap->owner.name = state == NAMED_OF_SAMPLES ? NULL : heap->name;
  heap->stands_for = NULL;
  store_relaxed(&heap->users, 0);
  store_relaxed(&heap->thread_heap, NULL);
  store_relaxed(&heap->owner.state, OWNER_RUNNING);
  store_release(&heap->state, state); /* the fields; pairs with named_is */
  return heap;
}

/* Under the lock: adds a dropped heap's counts to those of the process. */
static void hand_counters_on(struct counters *counters) {
  for (unsigned which = 0; which < COUNTER_COUNT; which++) {
    uint64_t counted = load_relaxed(&counters->value[which]);
    if (!counted) continue;
    fetch_add_relaxed(&stray_counters.value[which], counted);
    store_relaxed(&counters->value[which], 0);
  }
}

static void drop_part(struct hak_heap *part) {
  store_release(&part->state, NAMED_UNUSED); /* all earlier writes to it; pairs with named_is */
  lock_take(&heaps_lock, &stray_counters);
  hand_counters_on(&part->owner.counters);
  put_record(part, part->owner.owned != NULL); /* a slab is left when a free came too late */
  lock_give(&heaps_lock);
}

void named_drop(struct hak_heap *heap) {
  for (unsigned at = 0; at < NAMED_LANES; at++) {
    struct hak_heap *lane = load_relaxed(&heap->lanes[at]); /* the heap has no user any more */
    if (!lane) continue;
    store_relaxed(&heap->lanes[at], NULL);
    drop_part(lane);
  }
  drop_part(heap);
  purge_want();
}

/* ---- users ----------------------------------------------------------------------------------- */

bool named_join(struct hak_heap *heap) {
  uint32_t users = load_relaxed(&heap->users);
  do {
    if (users == NAMED_CLOSED) return false;
    /* acq_rel: orders nothing; either this thread is counted, or the heap is closed. */
  } while (!cas_weak_acq_rel(&heap->users, &users, users + 1));
  return true;
}

void named_part(struct hak_heap *heap) {
  /* seq: release is enough: the thread's work in the heap; pairs with named_close. */
  fetch_sub_seq(&heap->users, 1);
}

bool named_close(struct hak_heap *heap, uint32_t users) {
  /* acquire: its users' work; pairs with named_part. */
  return cas_strong_acq_rel(&heap->users, &users, NAMED_CLOSED);
}

/* ---- the latch ------------------------------------------------------------------------------- */

uint64_t named_live_bytes(const struct hak_heap *heap) {
  const struct hak_heap *part;
  uint64_t bytes = 0;
  for (unsigned at = 0; (part = named_next_part(heap, &at));) bytes += named_part_bytes(part);
  return bytes;
}

void named_collect(struct hak_heap *heap) {
  struct hak_heap *part;
  for (unsigned at = 0; (part = named_next_part(heap, &at));) {
    named_enter(part);
    owner_collect_all(&part->owner);
    named_leave(part);
  }
}

/* A lane whose latch is taken is left out: a thread never waits for two. */
static void collect_under_latch(struct hak_heap *heap) {
  struct hak_heap *part;
  for (unsigned at = 0; (part = named_next_part(heap, &at));) {
    if (part != heap && !latch_try(&part->owner)) continue;
    owner_collect_all(&part->owner);
    if (part != heap) named_leave(part);
  }
}

bool named_limit_allows(struct hak_heap *heap, uint64_t limit, size_t bytes) {
  if (bytes <= limit && named_live_bytes(heap) <= limit - bytes) return true;
  collect_under_latch(heap);
  return bytes <= limit && named_live_bytes(heap) <= limit - bytes;
}

void named_note_total(const struct hak_heap *heap, struct hak_heap *part) {
  uint64_t bytes = named_live_bytes(heap);
  if (bytes > load_relaxed(&part->peak_bytes)) store_relaxed(&part->peak_bytes, bytes);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* NULL without memory. */
static struct hak_heap *make_lane(struct hak_heap *heap) {
  ATOMIC(struct hak_heap *) *place = &heap->lanes[thread_number() % NAMED_LANES];
  struct hak_heap *made = named_make(NAMED_LANE, ""), *other = NULL;
  if (!made) return NULL;
  made->owner.name = heap->owner.name;
  made->stands_for = heap;
  /* release: its fields; pairs with named_enter_part and named_next_part. */
  if (cas_strong_acq_rel(place, &other, made)) return made;
  named_drop(made); /* another thread made one first */
  return other;
}

NOINLINE struct hak_heap *named_enter_busy(struct hak_heap *heap, struct hak_heap *part) {
  if (part == heap) {
    struct hak_heap *lane = make_lane(heap);
    if (lane) part = lane;
  }
  if (!word_try(&part->owner.latch, thread_number())) word_wait(&part->owner.latch);
  return part;
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* Cuts off a part, and with a lane its heap. That of samples has no successor that stands for it:
 * it looks as if it had been destroyed. */
static void cut_off(struct hak_heap *part) {
  struct hak_heap *heap = named_is(part, NAMED_LANE) ? part->stands_for : part;
  enum named_state state = named_is(heap, NAMED_OF_SAMPLES) ? NAMED_UNUSED : NAMED_CUT_OFF;
  store_relaxed(&part->state, state);
  if (named_serves(heap)) store_relaxed(&heap->state, state);
}

/* A heap that a lost thread was changing stays as it is: its blocks live, and can be freed one by
 * one. */
void named_after_fork(const struct hak_heap *used) {
  struct hak_heap *heap;
  for (uint32_t number = 0; (heap = named_next(&number));) {
    /* Other threads' uses are not copied by a fork. Writes only where the count differs: an
     * unwritten page stays shared. */
    uint32_t before = load_relaxed(&heap->users), users = heap == used;
    if (before != users && before != NAMED_CLOSED) store_relaxed(&heap->users, users);
    pending_after_fork(&heap->owner);
    if (!word_reset_in_child(&heap->owner.latch)) continue;
    store_relaxed(&heap->owner.state, OWNER_LOST);
    if (named_serves(heap)) cut_off(heap);
  }
  lock_reset_in_child(&heaps_lock); /* a record that was being taken is in use for good */
}

COLD static struct hak_heap *next_successor(struct hak_heap *heap) {
  struct hak_heap *other =
      load_acquire(&heap->successor); /* its fields; pairs with the CAS below */
  if (other) return other;
  struct hak_heap *made = named_make(NAMED_IN_USE, heap->name);
  if (!made) return NULL;
  store_relaxed(&made->limit_bytes, load_relaxed(&heap->limit_bytes));
  store_relaxed(&made->tag, load_relaxed(&heap->tag));
  made->stands_for = heap->stands_for ? heap->stands_for : heap;
  if (cas_strong_acq_rel(&heap->successor, &other, made)) return made; /* release: its fields */
  named_drop(made); /* another thread made one first */
  return other;
}

/* The successor may have been cut off as well, by a fork of the child. */
COLD struct hak_heap *named_successor(struct hak_heap *heap) {
  while (heap && (named_is(heap, NAMED_CUT_OFF) || named_is(heap, NAMED_LANE)))
    heap = named_is(heap, NAMED_LANE) ? heap->stands_for : next_successor(heap);
  return heap;
}
