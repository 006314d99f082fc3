/* src/ranges/range_record.c: a range inside of which chunks have no records is cut by threads that
 * want parts of it, or neighbours. */
#include "ranges.h"
#include "ranges/arena.h"

enum { CHUNKS = 5, WHOLE = CHUNKS * (int)GRANULES_PER_CHUNK, PART = 70 };

static size_t left, whole;
static struct arena *home;
static struct range_request part = {.granules = PART, .alignment_granules = 1};
static bool is_extended, is_shrunk;

static void set_up(void) {
  ranges_set_up();
  left = take_fresh(2 * GRANULES_PER_CHUNK);
  whole = take_fresh(WHOLE);
  MODEL_REQUIRE(whole == left + 2 * GRANULES_PER_CHUNK);
  MODEL_REQUIRE(!range_record_if_any(whole + 2 * GRANULES_PER_CHUNK));
  home = arena_of(whole);
  part.home = (unsigned)(home - arenas);
  is_extended = is_shrunk = false;
}

static void set_up_free(void) {
  set_up();
  range_give(whole, 0, &strays[0]);
}

/* Whoever has a range writes to its records. */
static void have(size_t granule) {
  taken[model_self()] = granule;
  if (granule == NO_GRANULE) return;
  range_info(granule)->site = (uint32_t)model_self();
  range_record(granule + PART - 1)->first = (uint32_t)granule;
}

/* By the hint of how much is free. */
static void take_part(void) { have(range_take_kind(RANGE_DIRTY, &part, mine())); }

/* Past it: what is about to be free is not in there yet. */
static void take_part_if_any(void) {
  arena_lock(home, mine());
  size_t granule = arena_take(home, RANGE_DIRTY, &part, mine());
  arena_unlock(home);
  have(granule);
}

static void extend_left(void) {
  is_extended = range_extend(left, 2 * GRANULES_PER_CHUNK + PART, mine());
}

static void shrink_whole(void) { is_shrunk = range_shrink(whole, PART, mine()); }

static size_t taken_granules(void) {
  size_t granules = 0;
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++) {
    if (taken[thread] == NO_GRANULE) continue;
    MODEL_REQUIRE(range_is_valid(taken[thread]) && range_info(taken[thread])->granules == PART);
    granules += PART;
  }
  return granules;
}

/* While one prepares the cut, another finds the whole: else it might be told that there is no
 * memory. */
static void check_taken(void) {
  require_laws();
  MODEL_REQUIRE(taken_granules() == 2 * PART && dirty_granules() == WHOLE - 2 * PART);
}

static void check_extended(void) {
  require_laws();
  size_t more = is_extended ? PART : 0;
  MODEL_REQUIRE(range_info(left)->granules == 2 * GRANULES_PER_CHUNK + more);
  MODEL_REQUIRE(taken_granules() == PART && PART + more + dirty_granules() == WHOLE);
}

static void check_shrunk(void) {
  require_laws();
  MODEL_REQUIRE(is_shrunk && range_is_valid(whole) && range_info(whole)->granules == PART);
  MODEL_REQUIRE(taken_granules() + dirty_granules() == WHOLE - PART);
}

SCENARIO("cut-take", .set_up = set_up_free, .threads = {take_part, take_part}, .check = check_taken,
         .always = no_spinning, MUTANTS(lock_mutants));
SCENARIO("cut-extend", .set_up = set_up_free, .threads = {extend_left, take_part},
         .check = check_extended, .always = no_spinning, MUTANTS(lock_mutants));
SCENARIO("cut-shrink", .set_up = set_up, .threads = {shrink_whole, take_part_if_any},
         .check = check_shrunk, .always = no_spinning, MUTANTS(lock_mutants));
