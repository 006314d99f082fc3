#include "named/slab_set.h"

#include <string.h>

#include "cache/heap.h"
#include "map/metadata.h"

/* The largest table has rows for 192 GiB. */
enum { TABLE_BITS_MIN = 5, TABLE_BITS_MAX = 17 };
_Static_assert(sizeof(struct slab_row) << TABLE_BITS_MAX <= RECORD_CHUNK_BYTES,
               "metadata_allocate gives no more at a time");
_Static_assert(SLOTS_PER_SUPERSLAB <= 32, "a row has a bit for each slot");

/* Tables that were given up, by log2 of their rows, for the next set that grows. */
struct spare {
  struct spare *next;
};
RARE_DATA static struct spare *spares[TABLE_BITS_MAX + 1]; /* under the lock */
static struct lock spares_lock;

static struct slab_row *take_table(unsigned bits) {
  lock_take(&spares_lock, &stray_counters);
  struct spare *spare = spares[bits];
  if (spare) spares[bits] = spare->next;
  lock_give(&spares_lock);
  size_t bytes = sizeof(struct slab_row) << bits;
  return spare ? memset(spare, 0, bytes) : metadata_allocate(bytes);
}

static void give_table(struct slab_row *table, unsigned bits) {
  if (!table) return;
  struct spare *spare = (struct spare *)(void *)table;
  lock_take(&spares_lock, &stray_counters);
  spare->next = spares[bits];
  spares[bits] = spare;
  lock_give(&spares_lock);
}

void slab_set_after_fork(void) {
  if (lock_reset_in_child(&spares_lock)) memset(spares, 0, sizeof spares); /* half changed */
}

static struct slab_row *rows_of(const struct slab_set *set) {
  return set->table ? set->table : (struct slab_row *)(uintptr_t)set->few;
}
static unsigned row_bits(const struct slab_set *set) {
  return set->table ? set->table_bits : FEW_ROW_BITS;
}

/* Where the SuperSlab's row is, or belongs. */
static struct slab_row *find(const struct slab_set *set, uint32_t place) {
  struct slab_row *rows = rows_of(set);
  size_t mask = ((size_t)1 << row_bits(set)) - 1, at = mix_bits(place) & mask;
  while (rows[at].place && rows[at].place != place) at = (at + 1) & mask;
  return &rows[at];
}

static bool is_slab_of(const struct slab *slab, const struct owner *owner) {
  /* relaxed: to and from this owner it changes only under its latch. */
  return load_relaxed(&slab->owner) == owner;
}

static struct slab *slab_at(const struct slab_row *row, unsigned slot) {
  return slab_of_granule((size_t)(row->place - 1) * GRANULES_PER_CHUNK + slot);
}

/* Without the slots at which the owner's slabs begin no more. */
static uint32_t slots_now(const struct slab_row *row, const struct owner *owner) {
  uint32_t now = 0;
  for (uint32_t slots = row->slots; slots; slots &= slots - 1) {
    unsigned slot = lowest_bit(slots);
    if (is_slab_of(slab_at(row, slot), owner)) now |= UINT32_C(1) << slot;
  }
  return now;
}

static void copy_row(struct slab_set *set, const struct slab_row *row, const struct owner *owner) {
  uint32_t slots = row->place ? slots_now(row, owner) : 0;
  if (!slots) return;
  *find(set, row->place) = (struct slab_row){row->place, slots};
  set->used++;
}

/* To a table with more rows. */
static bool grow(struct slab_set *set, const struct owner *owner) {
  struct slab_set larger = {.table_bits = set->table ? set->table_bits + 1 : TABLE_BITS_MIN};
  if (larger.table_bits > TABLE_BITS_MAX) return false;
  larger.table = take_table(larger.table_bits);
  if (!larger.table) return false;
  const struct slab_row *rows = rows_of(set);
  for (size_t at = 0; at < (size_t)1 << row_bits(set); at++) copy_row(&larger, &rows[at], owner);
  give_table(set->table, set->table_bits);
  *set = larger;
  return true;
}

bool slab_set_make_room(struct slab_set *set, const struct owner *owner) {
  bool is_room = (set->used + 1) * 4 <= (size_t)3 << row_bits(set);
  return is_room || grow(set, owner);
}

void slab_set_add(struct slab_set *set, const struct slab *slab) {
  size_t granule = granule_of(slab->base);
  uint32_t place = (uint32_t)(granule / GRANULES_PER_CHUNK) + 1;
  struct slab_row *row = find(set, place);
  set->used += !row->place;
  row->place = place;
  row->slots |= UINT32_C(1) << granule % GRANULES_PER_CHUNK;
}

struct slab *slab_set_next(const struct slab_set *set, const struct owner *owner, size_t *next) {
  const struct slab_row *rows = rows_of(set);
  for (; *next < (size_t)SLOTS_PER_SUPERSLAB << row_bits(set); ++*next) {
    const struct slab_row *row = &rows[*next / SLOTS_PER_SUPERSLAB];
    unsigned slot = *next % SLOTS_PER_SUPERSLAB;
    if (!row->place || !(row->slots >> slot & 1) || !is_slab_of(slab_at(row, slot), owner))
      continue;
    ++*next;
    return slab_at(row, slot);
  }
  return NULL;
}

void slab_set_clear(struct slab_set *set) {
  give_table(set->table, set->table_bits);
  *set = (struct slab_set){0};
}
