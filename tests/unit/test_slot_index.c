/* src/pool/slot_index: what is found, in which order, in heaps of any size. */
#include "pool/slot_index.h"

#include "child.h"
#include "pool/superslab.h"

enum { PLACES = 9, ROUNDS = 20000 };

/* Neighbours in a word, in the word above, in another gibibyte, another tree, another piece of the
 * table. */
static const size_t chunks[PLACES] = {0, 7, 8, 63, 64, 700, 4095, 4096, 70000};
static ATOMIC(uint64_t) slots[PLACES];

static void set_up(size_t frontier) {
  REQUIRE(window_init(UINT64_C(1) << 40));
  store_relaxed(&window.frontier_chunk, frontier);
  for (unsigned place = 0; place < PLACES && chunks[place] < frontier; place++)
    REQUIRE(slot_index_covers(chunks[place]));
}

static void change(unsigned place, uint64_t now) {
  store_seq(&slots[place], now);
  slot_index_note(chunks[place], &slots[place], now);
}

/* Runs of free slots as their definition says it. */
static bool has_run(uint32_t bits, unsigned slot_count) {
  for (unsigned first = 0; first + slot_count <= SLOTS_PER_SUPERSLAB; first++)
    if ((bits & run_mask(first, slot_count)) == run_mask(first, slot_count)) return true;
  return false;
}

static unsigned kinds_by_definition(uint64_t now) {
  uint32_t unused = slots_unused(now), dirty = unused & slots_dirty(now);
  if (unused == ALL_SLOTS) return dirty ? KIND_KEPT : KIND_CLEAN;
  unsigned kinds = 0;
  for (unsigned slot_count = 1; slot_count <= 4; slot_count *= 2) {
    if (has_run(unused, slot_count)) kinds |= kind_of_run(slot_count, false);
    if (has_run(dirty, slot_count)) kinds |= kind_of_run(slot_count, true);
  }
  return kinds;
}

static uint64_t random_slots(uint64_t *random) {
  uint64_t word = random_next(random) & random_next(random);
  switch (random_next(random) % 8) {
    case 0: return 0;
    case 1: return ALL_SLOTS;
    case 2: return ALL_SLOTS | slots_as_dirty((uint32_t)word);
    case 3: return word & slots_as_dirty(ALL_SLOTS);
    default: return word;
  }
}

/* The first place of the kind, as the index finds it; searches that are led astray mend what led
 * them. */
static unsigned find(unsigned kind) {
  size_t chunk;
  while ((chunk = slot_index_find(kind)) != NO_CHUNK) {
    unsigned place = 0;
    while (place < PLACES && chunks[place] != chunk) place++;
    REQUIRE(place < PLACES);
    if (slot_kinds(load_seq(&slots[place])) & kind) return place;
    slot_index_note(chunk, &slots[place], load_seq(&slots[place]));
  }
  return PLACES;
}

static void compare(void) {
  for (unsigned kind = 1; kind <= KIND_CLEAN; kind *= 2) {
    unsigned place = 0;
    while (place < PLACES && !(kinds_by_definition(load_seq(&slots[place])) & kind)) place++;
    REQUIRE(find(kind) == place);
  }
}

CHILD_TESTS(first_of_each_kind, size_t, frontier, 8, 64, 4096, 4097, 70001) {
  uint64_t random = 99;
  set_up(frontier);
  unsigned places = 0;
  while (places < PLACES && chunks[places] < frontier) places++;
  for (unsigned round = 0; round < ROUNDS; round++) {
    uint64_t now = random_slots(&random);
    REQUIRE(slot_kinds(now) == kinds_by_definition(now));
    change((unsigned)(random_next(&random) % places), now);
    if (round % 4 == 0) compare();
  }
}

CHILD_TEST(downwards) {
  set_up(70001);
  for (unsigned place = 0; place < PLACES; place++)
    change(place, place % 2 ? ALL_SLOTS | slots_as_dirty(1) : 1);
  size_t chunk = 70001;
  for (unsigned place = PLACES; place-- > 0;) {
    chunk = slot_index_find_below(chunk, KIND_ANY_RUN | KIND_KEPT);
    REQUIRE(chunk == chunks[place]);
  }
  REQUIRE(slot_index_find_below(chunk, KIND_ANY_RUN | KIND_KEPT) == NO_CHUNK);
  REQUIRE(slot_index_find_below(70001, KIND_KEPT) == 4096);
  REQUIRE(slot_index_repair() == PLACES / 2); /* those that are kept */
  REQUIRE(find(KIND_KEPT) == 1 && find(KIND_ANY_RUN) == 0);
}
