/* src/pool/slab_pool: the three stages, the states of slots, the LRU and purge by age. */
#include "slab/record.h"

#include "child.h"
#include "fake/os_fake.h"

enum { CLASS_8 = 0, CLASS_64 = 4, CLASS_1024 = 20, CLASS_12K = 35, CLASS_32K = 40, EMPTY_KEPT = 4 };

static struct counters counters;

static uint64_t counted(enum counter which) { return load_relaxed(&counters.value[which]); }

static void set_up(void) { REQUIRE(window_init(UINT64_C(64) << 30)); }
BEFORE(child) { set_up(); }

static struct purge purge_of_age(uint32_t decay_ms) {
  return (struct purge){
      .now_ms = (uint32_t)os_now_coarse_ms(), .decay_ms = decay_ms, .calls_left = SIZE_MAX};
}

static uint64_t purge_older_than(uint32_t decay_ms) {
  struct purge purge = purge_of_age(decay_ms);
  slab_pool_purge(&purge);
  return purge.purged_bytes;
}

static struct superslab *superslab_of(const struct slab *slab) {
  return superslab_of_granule(granule_of(slab->base));
}

static enum slot_state state_of(const struct slab *slab) {
  uint64_t slots = load_relaxed(&superslab_of(slab)->slots);
  bool is_unused = slots_unused(slots) >> granule_of(slab->base) % GRANULES_PER_CHUNK & 1;
  return is_unused ? SLOT_UNUSED : load_relaxed(&slab->state);
}

/* ---- stages ---------------------------------------------------------------------------------- */

CHILD_TEST(stages) {
  struct slab *first = acquire_slab(CLASS_64, POOL_ALL, &counters);
  REQUIRE(first && counted(COUNT_acquire_os) == 1 && state_of(first) == SLOT_ACTIVE);
  struct slab *second = acquire_slab(CLASS_64, POOL_ALL, &counters);
  REQUIRE(second && counted(COUNT_acquire_unused) == 1 && counted(COUNT_acquire_os) == 1);
  release_slab(first, 0, &counters);
  REQUIRE(state_of(first) == SLOT_EMPTY && counted(COUNT_released_slabs) == 1);
  REQUIRE(acquire_slab(CLASS_64, POOL_ALL, &counters) == first &&
          counted(COUNT_acquire_empty) == 1);
  REQUIRE(state_of(first) == SLOT_ACTIVE);
  release_slab(first, 0, &counters);
  /* Other classes have it before slots without pages, if it is long enough. */
  REQUIRE(acquire_slab(CLASS_32K, POOL_ALL, &counters) && state_of(first) == SLOT_EMPTY);
  REQUIRE(acquire_slab(CLASS_1024, POOL_TOUCHED, &counters) == first);
  REQUIRE(!acquire_slab(CLASS_1024, POOL_TOUCHED, &counters));
}

/* More EMPTY slots than a class keeps serve every class. */
CHILD_TEST(a_class_keeps_a_few) {
  struct slab *slabs[EMPTY_KEPT + 1];
  for (unsigned index = 0; index <= EMPTY_KEPT; index++)
    slabs[index] = acquire_slab(CLASS_64, POOL_ALL, &counters);
  for (unsigned index = 0; index <= EMPTY_KEPT; index++) release_slab(slabs[index], 0, &counters);
  REQUIRE(state_of(slabs[EMPTY_KEPT - 1]) == SLOT_EMPTY);
  REQUIRE(state_of(slabs[EMPTY_KEPT]) == SLOT_UNUSED);
  /* Slots with pages before fresh ones: the next slab of another class is that one. */
  REQUIRE(acquire_slab(CLASS_8, POOL_ALL, &counters) == slabs[EMPTY_KEPT]);
}

/* ---- shape ----------------------------------------------------------------------------------- */

CHILD_TEST(shapes_and_places) {
  enum { SLABS = 400 };
  struct slab *slabs[SLABS];
  uint64_t random = 7;
  for (unsigned index = 0; index < SLABS; index++) {
    unsigned class = (unsigned)random_below(&random, FITTED_CLASS_FIRST);
    struct slab *slab = slabs[index] = acquire_slab(class, POOL_ALL, &counters);
    REQUIRE(slab && slab->class == class && slab->block_bytes == class_bytes(class));
    size_t bytes = slab->slot_count * GRANULE_BYTES;
    REQUIRE(slab->capacity >= (class < FITTED_CLASS_FIRST - FILLING_CLASS_COUNT ? 8 : 4) &&
            (size_t)slab->capacity * slab->block_bytes <= bytes);
    REQUIRE((size_t)(slab->capacity + 1) * slab->block_bytes > bytes);
    REQUIRE(slab->base / CHUNK_BYTES == (slab->base + bytes - 1) / CHUNK_BYTES);
    unsigned free_blocks = 0;
    for (unsigned word = 0; word < slab->word_count; word++)
      free_blocks += count_bits(slab->local[word]);
    REQUIRE(free_blocks == slab->capacity && slab->free_local == slab->capacity);
    /* Nobody else's slab begins in, or reaches into, this one. */
    for (size_t at = 0; at < bytes; at += GRANULE_BYTES) {
      unsigned char *byte = (unsigned char *)slab->base + at;
      REQUIRE(slab_of_block(slab->base + at + 5) == slab && *byte == 0);
      *byte = 1;
    }
  }
}

/* What a small process writes of the smallest classes' bitmaps is one page. */
CHILD_TEST(wide_bitmaps) {
  enum { NEIGHBOURS = WIDE_ALIGNMENT / (WIDE_WORDS * 8) };
  for (unsigned slot = 0; slot < NEIGHBOURS; slot++) {
    const struct slab *slab = acquire_slab(CLASS_8, POOL_ALL, &counters);
    REQUIRE((uintptr_t)slab->local % WIDE_ALIGNMENT == slot * WIDE_WORDS * sizeof(uint64_t));
    REQUIRE((uintptr_t)slab->remote - (uintptr_t)slab->local >= WIDE_ALIGNMENT);
    REQUIRE((uintptr_t)(slab->remote + WIDE_WORDS) <=
            (uintptr_t)(slab_chunk_of(granule_of(slab->base)) + 1));
  }
}

/* slab_block_index has no division: it must be right for every byte of every class, and beyond both
 * ends. */
CHILD_TEST(index_of_every_byte) {
  for (unsigned class = 0; class < FITTED_CLASS_FIRST; class ++) {
    const struct slab *slab = acquire_slab(class, POOL_ALL, &counters);
    size_t bytes = slab->slot_count * GRANULE_BYTES;
    for (size_t offset = -bytes; offset != 2 * bytes; offset++) {
      size_t index = slab_block_index(&slab_shapes[slab->class], offset);
      bool is_block = offset < bytes && offset % slab->block_bytes == 0;
      if (is_block && offset / slab->block_bytes < slab->capacity)
        REQUIRE(index == offset / slab->block_bytes);
      else
        REQUIRE(index >= slab->capacity);
    }
  }
}

/* ---- the LRU and purge by age ---------------------------------------------------------------- */

/* A SuperSlab full of slabs, written to and released. */
static struct slab *use_and_release(unsigned class) {
  struct slab *slabs[SLOTS_PER_SUPERSLAB];
  unsigned count = 0;
  do {
    slabs[count] = acquire_slab(class, POOL_ALL, &counters);
    memset((void *)slabs[count]->base, 0x77, GRANULE_BYTES);
  } while (++count < SLOTS_PER_SUPERSLAB / slots_of_class(class));
  for (unsigned index = 0; index < count; index++) release_slab(slabs[index], 0, &counters);
  return slabs[0];
}

CHILD(age) {
  set_up();
  struct slab *slab = use_and_release(CLASS_64);
  unsigned char *first = (unsigned char *)slab->base;
  os_fake_advance_ms(999);
  REQUIRE(purge_older_than(1000) == 0 && *first == 0x77);
  os_fake_advance_ms(1);
  /* EMPTY becomes UNUSED, the SuperSlab is wholly free and joins the LRU, all as old as it is. */
  struct purge purge = purge_of_age(1000);
  slab_pool_purge(&purge);
  struct slab_pool_sizes sizes;
  REQUIRE(state_of(slab) == SLOT_UNUSED && empty_slabs_bytes() == 0);
  REQUIRE(purge.purged_bytes == CHUNK_BYTES && !purge.work_remains && *first == 0);
  slab_pool_measure(&sizes);
  REQUIRE(load_relaxed(&totals.superslabs_kept) == 0 && sizes.dirty_bytes == 0);
  REQUIRE(load_relaxed(&totals.superslabs) == 1);
  REQUIRE(sizes.mapped_bytes == CHUNK_BYTES); /* mappings are kept */
  REQUIRE(acquire_slab(CLASS_8, POOL_ALL, &counters) && counted(COUNT_acquire_lru) == 1);
  REQUIRE(counted(COUNT_acquire_os) == 1);
}

TEST(purge_by_age) { assert_child_succeeds(age, NULL); }

/* Slots of a SuperSlab that is still in use lose their pages too; the others keep theirs. */
CHILD_TEST(purge_of_single_slots) {
  struct slab *slabs[EMPTY_KEPT + 3];
  for (unsigned index = 0; index < EMPTY_KEPT + 3; index++) {
    slabs[index] = acquire_slab(CLASS_64, POOL_ALL, &counters);
    memset((void *)slabs[index]->base, 0x55, GRANULE_BYTES);
  }
  for (unsigned index = 1; index < EMPTY_KEPT + 3; index++)
    release_slab(slabs[index], 0, &counters);
  os_fake_advance_ms(1000);
  REQUIRE(purge_older_than(1000) == (EMPTY_KEPT + 2) * GRANULE_BYTES);
  REQUIRE(*(unsigned char *)slabs[0]->base == 0x55 && *(unsigned char *)slabs[1]->base == 0);
  REQUIRE(load_relaxed(&os_fake.calls[OS_CALL_PURGE]) == 1); /* neighbours in one call */
  REQUIRE(purge_older_than(0) == 0);                         /* nothing twice */
}

/* What was given back and is used again is counted, once. */
CHILD_TEST(use_after_purge) {
  struct slab *stays = acquire_slab(CLASS_64, POOL_ALL, &counters),
              *goes = acquire_slab(CLASS_64, POOL_ALL, &counters);
  release_slab(goes, 0, &counters);
  os_fake_advance_ms(10);
  purge_older_than(5); /* EMPTY becomes UNUSED, */
  purge_older_than(5); /* and UNUSED loses its pages */
  REQUIRE(load_relaxed(&totals.purged_bytes) == GRANULE_BYTES);
  REQUIRE(load_relaxed(&totals.refaulted_bytes) == 0);
  REQUIRE(acquire_slab(CLASS_1024, POOL_ALL, &counters) == goes);
  REQUIRE(load_relaxed(&totals.refaulted_bytes) == GRANULE_BYTES);
  REQUIRE(acquire_slab(CLASS_1024, POOL_ALL, &counters) != stays);
  REQUIRE(load_relaxed(&totals.refaulted_bytes) == GRANULE_BYTES);
}

CHILD_TEST(purge_refused) {
  use_and_release(CLASS_64);
  os_fake_fail(1u << OS_CALL_PURGE, 1, UINT64_MAX);
  purge_older_than(0);
  REQUIRE(purge_older_than(0) == 0);
  os_fake_fail_none();
  struct slab *slab = use_and_release(CLASS_64); /* all of it is of use again */
  REQUIRE(slab && counted(COUNT_acquire_os) == 1);
}

static uint32_t dirty_of(const struct slab *slab) {
  return slots_dirty(load_relaxed(&superslab_of(slab)->slots));
}

CHILD_TEST(lru_budget) {
  superslabs_kept_max = 1;
  struct slab *slabs[3 * SLOTS_PER_SUPERSLAB];
  for (unsigned index = 0; index < 3 * SLOTS_PER_SUPERSLAB; index++)
    slabs[index] = acquire_slab(CLASS_1024, POOL_ALL, &counters);
  for (unsigned index = 0; index < 3 * SLOTS_PER_SUPERSLAB; index++)
    release_slab(slabs[index], 0, &counters);
  purge_older_than(1000); /* nothing is old, but two of three whole SuperSlabs are too many */
  REQUIRE(load_relaxed(&totals.superslabs) == 3 && load_relaxed(&totals.superslabs_kept) <= 1);
  /* Those that are taken first keep their pages. */
  REQUIRE(dirty_of(slabs[SLOTS_PER_SUPERSLAB - 1]) == ALL_SLOTS);
  REQUIRE(dirty_of(slabs[2 * SLOTS_PER_SUPERSLAB - 1]) == 0);
  REQUIRE(dirty_of(slabs[3 * SLOTS_PER_SUPERSLAB - 1]) == 0);
}

/* ---- addresses ------------------------------------------------------------------------------- */

CHILD_TESTS(give_addresses, bool, is_strict, false, true) {
  os_fake.is_overcommit_strict = is_strict;
  set_up();
  uint64_t before = load_relaxed(&os_fake.address_bytes);
  use_and_release(CLASS_64);
  REQUIRE(load_relaxed(&os_fake.address_bytes) >= before + CHUNK_BYTES);
  purge_older_than(0);
  uint64_t kept = load_relaxed(&os_fake.address_bytes);
  struct purge pressure = purge_of_age(0);
  pressure.give_addresses = true;
  slab_pool_purge(&pressure);
  uint64_t after = load_relaxed(&os_fake.address_bytes);
  REQUIRE(after == (is_strict ? kept : kept - CHUNK_BYTES));
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, 1);
  REQUIRE(!acquire_slab(CLASS_8, POOL_ALL, &counters)); /* mapping it again may be refused … */
  REQUIRE(acquire_slab(CLASS_8, POOL_ALL, &counters));  /* … and tried again */
  REQUIRE(counted(COUNT_acquire_os) == 1 && counted(COUNT_acquire_lru) == 1);
}
