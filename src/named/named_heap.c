#include "named/named_heap.h"

#include <string.h>

#include "base/text.h"
#include "cache/heap.h"
#include "map/metadata.h"
#include "slab/adopt.h"
#include "slab/pending.h"

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

/* Records by number, which is what fits into the owner map: rows that double. */
enum { FIRST_ROW_BITS = 6, ROWS = 12 };
static ATOMIC(ATOMIC(struct hak_heap *) *) rows[ROWS];
static uint32_t numbers; /* given so far; under the lock */
static uint64_t serials; /* likewise */

ATOMIC(struct hak_heap *) all_named_heaps;
static struct lock heaps_lock = {.rank = LOCK_RANK_NAMED};
static struct hak_heap *unused; /* under the lock */

struct place {
  unsigned row, at;
};
static struct place place_of(uint32_t number) {
  unsigned index = number - 1 + (1u << FIRST_ROW_BITS), row = highest_bit(index) - FIRST_ROW_BITS;
  return (struct place){row, index - (1u << (row + FIRST_ROW_BITS))};
}

LONG_LIVED struct hak_heap *named_of_entry(uint32_t entry) {
  if (!map_entry_is_named(entry)) return NULL;
  struct place place = place_of(entry >> MAP_TAG_SHIFT);
  /* acquire, both: the row, and the record; pairs with publish. */
  return load_acquire(&load_acquire(&rows[place.row])[place.at]);
}

/* Under the lock. */
static bool publish(struct hak_heap *heap) {
  struct place place = place_of(heap->owner.number);
  ATOMIC(struct hak_heap *) *row = load_relaxed(&rows[place.row]);
  if (!row) {
    row = metadata_allocate(sizeof *row << (FIRST_ROW_BITS + place.row));
    if (!row) return false;
    store_release(&rows[place.row], row); /* its zeros; pairs with named_of_entry */
  }
  store_release(&row[place.at], heap); /* the record; pairs with named_of_entry */
  heap->next_of_all = load_relaxed(&all_named_heaps);
  store_release(&all_named_heaps, heap); /* the record; pairs with named_first */
  return true;
}

/* Under the lock. */
static struct hak_heap *make_record(void) {
  struct hak_heap *heap = unused;
  if (heap) {
    unused = heap->next_unused;
    return heap;
  }
  heap = place_of(numbers + 1).row < ROWS ? metadata_allocate(sizeof *heap) : NULL;
  if (!heap) return NULL;
  heap->owner.number = numbers + 1;
  heap->owner.tag = heap->owner.number << MAP_TAG_SHIFT | MAP_CLASS_NAMED;
  heap->owner.name = heap->name;
  if (!publish(heap)) return NULL; /* the record is lost; there is no memory for others either */
  numbers++;
  return heap;
}

/* ---- records ------------------------------------------------------------------------------------------------------ */

/* A reader from outside may see a mixture for a moment; it always ends. */
LONG_LIVED void named_set_name(struct hak_heap *heap, const char *name) {
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

LONG_LIVED struct hak_heap *named_make(enum named_state state, const char *name) {
  lock_take(&heaps_lock, &stray_counters);
  struct hak_heap *heap = make_record();
  if (heap) heap->serial = ++serials;
  lock_give(&heaps_lock);
  if (!heap) return NULL;
  forget_figures(heap);
  named_set_name(heap, name);
  heap->stands_for = NULL;
  store_relaxed(&heap->users, 0);
  store_relaxed(&heap->thread_heap, NULL);
  store_relaxed(&heap->owner.state, OWNER_RUNNING);
  store_release(&heap->state, state); /* the fields; pairs with named_is */
  return heap;
}

LONG_LIVED void named_drop(struct hak_heap *heap) {
  store_release(&heap->state, NAMED_UNUSED); /* all that was done to it; pairs with named_is */
  lock_take(&heaps_lock, &stray_counters);
  heap->next_unused = unused;
  unused = heap;
  lock_give(&heaps_lock);
}

/* ---- users -------------------------------------------------------------------------------------------------------- */

bool named_join(struct hak_heap *heap) {
  uint32_t users = load_relaxed(&heap->users);
  do {
    if (users == NAMED_CLOSED) return false;
    /* acq_rel: orders nothing; either this thread is counted, or the heap is closed. */
  } while (!cas_weak_acq_rel(&heap->users, &users, users + 1));
  return true;
}

void named_part(struct hak_heap *heap) {
  /* seq: release is enough: all that the thread did in the heap; pairs with named_close. */
  fetch_sub_seq(&heap->users, 1);
}

bool named_close(struct hak_heap *heap, uint32_t users) {
  /* acquire: what its users did; pairs with named_part. */
  return cas_strong_acq_rel(&heap->users, &users, NAMED_CLOSED);
}

/* ---- the latch ---------------------------------------------------------------------------------------------------- */

LONG_LIVED void named_collect(struct hak_heap *heap) { owner_collect_all(&heap->owner); }

LONG_LIVED bool named_limit_allows(struct hak_heap *heap, uint64_t limit, size_t bytes) {
  if (bytes <= limit && named_live_bytes(heap) <= limit - bytes) return true;
  named_collect(heap);
  return bytes <= limit && named_live_bytes(heap) <= limit - bytes;
}

/* ---- fork --------------------------------------------------------------------------------------------------------- */

/* Other threads' uses did not come along.  What is not written is not copied. */
static void count_users_anew(struct hak_heap *heap, uint32_t users) {
  uint32_t before = load_relaxed(&heap->users);
  if (before != users && before != NAMED_CLOSED) store_relaxed(&heap->users, users);
}

/* What a thread was changing that did not come along stays as it is: its blocks live, and can be freed one by one. */
void named_after_fork(const struct hak_heap *used) {
  for (struct hak_heap *heap = named_first(); heap; heap = heap->next_of_all) {
    count_users_anew(heap, heap == used);
    if (!word_reset_in_child(&heap->owner.latch)) continue;
    store_relaxed(&heap->owner.state, OWNER_LOST);
    if (named_is(heap, NAMED_IN_USE)) store_relaxed(&heap->state, NAMED_CUT_OFF);
  }
  if (lock_reset_in_child(&heaps_lock)) unused = NULL; /* somebody was changing the list */
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
  named_drop(made); /* another thread was faster */
  return other;
}

/* What stands for it may have been cut off in its turn, by a fork of the child. */
COLD struct hak_heap *named_successor(struct hak_heap *heap) {
  while (heap && named_is(heap, NAMED_CUT_OFF)) heap = next_successor(heap);
  return heap;
}
