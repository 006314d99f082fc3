#include "cache/capacity.h"

#include "cache/packing.h"
#include "config/limits.h"
#include "map/commit.h"
#include "map/metadata.h"

enum {
  SLOTS_MAX = 2048,
  INITIAL_SLOTS = 4,
  STREAK_TO_GROW = 2, /* misses of one kind in a row that raise the batch size */
  STREAK_SLOTS = 64,  /* by streaks alone, independent of the live bytes */
  STREAK_SLOTS_MAX = 256,
  STREAK_DIVISOR = 64, /* beyond STREAK_SLOTS: the part of its class's slabs that it may hold */
};
_Static_assert(SLOTS_MAX < 1 << SPARE_ARRAY_KINDS, "spare_arrays has a place for the largest");
_Static_assert(SLOTS_MAX <= UINT16_MAX, "a magazine's blocks fit seen_count");
/* Block bytes that a new magazine may hold: 4 small blocks, one of 32 KiB or more. */
#define INITIAL_BYTES ((size_t)32 << 10)
_Static_assert(INITIAL_BYTES / FITTED_MAX_BYTES >= INITIAL_SLOTS,
               "a fitted class begins as others");
/* It may grow to this without asking what the program holds. */
#define MODEST_BYTES ((size_t)16 << 10)

/* By streaks it may hold as many blocks as are in two pages, whatever their number. */
#define FEW_PAGES_BYTES ((size_t)8 << 10)
/* By streaks it may hold this much: a thread that only takes or only frees pays for each batch. */
#define STREAK_BYTES ((size_t)256 << 10)

/* The bound of all magazines together: this and twice the live bytes of a thread, as a swing is of
 * that order (docs/decisions/0005). */
#define BUDGET_BYTES ((int64_t)256 << 10)

RESIDENT int64_t capacity_cached_bytes(const struct heap *heap) {
  int64_t bytes = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    bytes += (int64_t)(magazine_count_shown(&heap->magazines[class]) * class_bytes(class));
  return bytes;
}

/* The live slab bytes of a thread: the mean of the next heaps in the list, since blocks change
 * hands, and threads that take turns would each keep what one needs. It stands for 256 decisions,
 * as other threads write the lines that are read. */
static int64_t live_bytes_a_thread(struct heap *heap) {
  enum { HEAPS_MAX = 8 };
  int64_t bytes = 0, threads = 0, heaps = 0;
  struct owner *own = &heap->owner, *owner = own;
  if (heap->share_decisions++ && os_is_multi_threaded()) return heap->share_bytes;
  do {
    int64_t live = load_relaxed(&owner->bytes_out) - capacity_cached_bytes(heap_of_owner(owner));
    bytes += live > 0 ? live : 0; /* else it caches others' blocks */
    threads += load_relaxed(&owner->state) == OWNER_RUNNING;
    owner = owner_after(owner);
  } while (owner != own && ++heaps < HEAPS_MAX);
  return heap->share_bytes = threads ? bytes / threads : 0;
}

RESIDENT static int64_t budget_bytes(int64_t live_bytes) {
  int64_t budget = (int64_t)limits_budget((uint64_t)(BUDGET_BYTES + 2 * live_bytes));
  return commit_is_too_much() ? budget / 8 : budget; /* above the soft limit */
}

/* Mostly without a walk over the heaps: at least what full magazines would leave is live. */
static bool is_within_budget(struct heap *heap, int64_t bytes) {
  int64_t least = load_relaxed(&heap->owner.bytes_out) - heap->capacity_bytes;
  if (least < 0 || os_is_multi_threaded()) least = 0;
  return bytes <= budget_bytes(least) || bytes <= budget_bytes(live_bytes_a_thread(heap));
}

static unsigned initial_slots(unsigned class) {
  if (class_is_fitted(class)) return INITIAL_SLOTS;
  size_t slots = INITIAL_BYTES / class_bytes(class);
  return slots > INITIAL_SLOTS ? INITIAL_SLOTS : (unsigned)power_of_two_at_least(slots);
}

static void add_capacity(struct heap *heap, unsigned class, int64_t slots) {
  heap->capacity_bytes += slots * (int64_t)class_bytes(class);
}

RESIDENT void capacity_init(struct heap *heap) {
  void **slots = heap->initial_slots + 1; /* the word below: magazine.h */
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct magazine *magazine = &heap->magazines[class];
    magazine_set_base(magazine, slots);
    magazine_set_top(magazine, slots);
    magazine_set_end(magazine, slots);
    slots += initial_slots(class);
  }
  ASSERT(slots <= heap->initial_slots + INITIAL_SLOTS_MAX);
}

void capacity_close(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  add_capacity(heap, class, -(int64_t)magazine_capacity(magazine));
  magazine_set_end(magazine, magazine_base(magazine));
  *magazine_base(magazine) = NULL; /* no block was the first yet: heap/free.c */
}

/* ---- arrays: powers of two, recycled within the heap ----------------------------------------- */

static void **take_array(struct heap *heap, unsigned kind) {
  void **array = heap->spare_arrays[kind];
  if (!array) {
    /* With the word below (magazine.h), so that free never reads what another thread writes to. */
    void **words = metadata_allocate((sizeof(void *) << kind) + sizeof(void *));
    return words ? words + 1 : NULL;
  }
  heap->spare_arrays[kind] = *array;
  return array;
}

static void give_array(struct heap *heap, void **array, unsigned slots) {
  bool is_initial = array >= heap->initial_slots && array < heap->initial_slots + INITIAL_SLOTS_MAX;
  if (is_initial || !is_power_of_two(slots)) return; /* the initial ones stay part of the heap */
  unsigned kind = lowest_bit(slots);
  *array = heap->spare_arrays[kind];
  heap->spare_arrays[kind] = (void **)array;
}

static bool may_hold(struct heap *heap, unsigned class, unsigned slots) {
  int64_t bytes = (int64_t)(slots * class_bytes(class));
  if (slots > SLOTS_MAX) return false;
  if (bytes <= (int64_t)MODEST_BYTES) return true;
  return is_within_budget(heap, heap->capacity_bytes + bytes / 2);
}

RESIDENT static void grow(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  unsigned slots = magazine_capacity(magazine), count = magazine_count(magazine);
  unsigned new_slots = slots * 2;
  if (!may_hold(heap, class, new_slots)) return;
  void **array = take_array(heap, lowest_bit(new_slots));
  if (!array) return;
  for (unsigned index = 0; index < count; index++) array[index] = magazine_base(magazine)[index];
  give_array(heap, magazine_base(magazine), slots);
  magazine_set_base(magazine, array);
  magazine_set_top(magazine, array + count);
  magazine_set_end(magazine, array + new_slots);
  add_capacity(heap, class, new_slots - slots);
}

/* One change from growing to shrinking is a phase of the program; a second one is a swing. */
static void note_bounce(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  uint8_t bounces = load_relaxed(&magazine->bounces);
  if (bounces < UINT8_MAX) store_relaxed(&magazine->bounces, (uint8_t)(bounces + 1));
  magazine->streak = 0;
  if (bounces) grow(heap, class);
}

/* Whether a magazine of that many slots costs little beside the class's slabs. */
static bool is_cheap(const struct heap *heap, unsigned class, unsigned slots) {
  size_t bytes = slots * class_bytes(class);
  if (slots > STREAK_SLOTS_MAX || bytes > STREAK_BYTES) return false;
  if (slots <= STREAK_SLOTS || bytes <= FEW_PAGES_BYTES) return true;
  size_t granules = (size_t)heap->owner.bins[class].slab_count * slots_of_class(class);
  return bytes <= granules * GRANULE_BYTES / STREAK_DIVISOR;
}

/* Larger batches while a program only grows, or only frees. */
static void note_streak(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  if (++magazine->streak < STREAK_TO_GROW) return;
  magazine->streak = 0;
  if (is_cheap(heap, class, magazine_capacity(magazine) * 2)) grow(heap, class);
}

RESIDENT void capacity_note_miss(struct heap *heap, unsigned class, enum magazine_event miss) {
  struct magazine *magazine = &heap->magazines[class];
  if (UNLIKELY(!magazine_capacity(magazine))) {
    magazine_set_end(magazine, magazine_base(magazine) + initial_slots(class));
    add_capacity(heap, class, initial_slots(class));
    return;
  }
  bool is_bounce = magazine->last_event != MAGAZINE_IDLE && magazine->last_event != miss;
  magazine->last_event = (uint8_t)miss;
  if (is_bounce)
    note_bounce(heap, class);
  else
    note_streak(heap, class);
}

bool capacity_shrink(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  ASSERT(!magazine_count(magazine));
  unsigned slots = magazine_capacity(magazine);
  if (slots <= initial_slots(class) || slots < 2) return false;
  void **array = take_array(heap, lowest_bit(slots / 2));
  if (!array) return false;
  packing_end(magazine);
  give_array(heap, magazine_base(magazine), slots);
  magazine_set_base(magazine, array);
  magazine_set_top(magazine, array);
  magazine_set_end(magazine, array + slots / 2);
  magazine->last_event = MAGAZINE_IDLE;
  add_capacity(heap, class, -(int64_t)(slots / 2));
  return true;
}

void capacity_shrink_all(struct heap *heap, unsigned most) {
  unsigned slots = 0, each = most / SLAB_CLASS_COUNT;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    slots += magazine_capacity(&heap->magazines[class]);
  if (slots <= most) return;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    if (magazine_count(&heap->magazines[class])) continue; /* in use, and so not flushed */
    while (magazine_capacity(&heap->magazines[class]) > each && capacity_shrink(heap, class)) {
    }
  }
}

bool capacity_exceeds_budget(struct heap *heap, unsigned class) {
  size_t bytes = magazine_capacity(&heap->magazines[class]) * class_bytes(class);
  return bytes > MODEST_BYTES && !is_within_budget(heap, heap->capacity_bytes);
}
