/* src/ranges/range.c and src/ranges/range_cache.c: ranges that are freed, merged, found again and
 * given back to the system. */
#include "config/options.h"
#include "os.h"
#include "os/os.h"
#include "ranges.h"
#include "ranges/large.h"
#include "ranges/range_cache.h"

enum { GRANULES = 3, SITE = 7 };

/* Neighbours, live when the threads begin. */
static size_t left, right;
static bool is_right_free;

static struct range_request request_of(size_t granules) {
  return (struct range_request){granules, 1, 0, 0};
}

static void set_up(void) {
  ranges_set_up();
  options.big_cache_bytes = UINT64_C(1) << 30;
  left = take_fresh(GRANULES);
  right = take_fresh(GRANULES);
  MODEL_REQUIRE(right == left + GRANULES);
  is_right_free = false;
}

/* Whoever has a range writes to its record. */
static void hold(size_t granule) {
  taken[model_self()] = granule;
  if (granule != NO_GRANULE) range_info(granule)->site = (uint32_t)model_self();
}

static void take_used(size_t granules) {
  struct range_request request = request_of(granules);
  hold(range_take_used(&request, mine()));
}

static unsigned holders_of(size_t granule) {
  unsigned holders = 0;
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++)
    holders += taken[thread] == granule;
  return holders;
}

/* What is free can be had, whole where free neighbours merged. */
static void require_dirty(size_t granule, size_t granules) {
  struct range_request request = request_of(granules);
  MODEL_REQUIRE(dirty_granules() == granules);
  if (granules) MODEL_REQUIRE(range_take_used(&request, mine()) == granule);
}

static const struct model_mutant every_lock_mutant[] = {
    {"the lock in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"the lock without acquire", {{"word_try", "cas", "word", MODEL_WEAKEN, 0}}},
    {"the lock without release", {{"word_give", "cas", "word", MODEL_WEAKEN, 0}}}};

/* ---- neighbours are freed and merge, and somebody wants one ---------------------------------- */

static void free_left(void) { range_give(left, 0, mine()); }
static void free_right(void) {
  range_give(right, 0, mine());
  is_right_free = true;
}
static void take_one(void) { take_used(GRANULES); }

static void check_merged(void) {
  require_laws();
  size_t got = taken[2];
  if (got == NO_GRANULE) {
    require_dirty(left, 2 * GRANULES);
  } else {
    MODEL_REQUIRE(got == left || got == right);
    MODEL_REQUIRE(range_info(got)->granules == GRANULES);
    require_dirty(got == left ? right : left, GRANULES);
  }
}

/* ---- one grows into its neighbour while that is freed, and wanted ---------------------------- */

static bool is_extended;
static void extend_left(void) { is_extended = range_extend(left, 2 * GRANULES, mine()); }

static void check_extended(void) {
  require_laws();
  size_t granules = is_extended ? 2 * GRANULES : GRANULES;
  MODEL_REQUIRE(range_info(left)->granules == granules);
  MODEL_REQUIRE(taken[2] == NO_GRANULE || taken[2] == right);
  MODEL_REQUIRE(!is_extended || taken[2] == NO_GRANULE);
  bool is_free = !is_extended && taken[2] == NO_GRANULE;
  require_dirty(right, is_free ? GRANULES : 0);
}

/* ---- a round of purging ---------------------------------------------------------------------- */

/* Nobody has what the system takes the pages of: the record would be written to meanwhile. */
static void look_at_purge(uintptr_t address, size_t bytes) {
  struct range_info *info = range_info(granule_of(address));
  MODEL_REQUIRE((uint64_t)info->granules << GRANULE_SHIFT == bytes);
  info->site = (uint32_t)model_self();
}

static void set_up_purge(void) {
  set_up();
  range_give(left, 0, &strays[0]);
  model_os.look_at_purge = look_at_purge;
}

static void purge(void) {
  struct purge everything = PURGE_EVERYTHING;
  range_purge(&everything, mine());
}

static void check_purged(void) {
  require_laws();
  MODEL_REQUIRE(taken[1] == NO_GRANULE || taken[1] == left);
  /* Whatever was purged reads as zero and merged with what was never used; the rest waits. */
  uint64_t live = 0;
  if (taken[1] == left) live += GRANULES;
  if (!is_right_free) live += GRANULES;
  MODEL_REQUIRE(dirty_granules() % GRANULES == 0 && dirty_granules() + live <= 2 * GRANULES);
  struct range_sizes sizes;
  range_measure(&sizes);
  MODEL_REQUIRE((sizes.dirty_bytes + sizes.clean_bytes + (live << GRANULE_SHIFT)) ==
                sizes.mapped_bytes);
}

/* ---- two threads free one Large block -------------------------------------------------------- */

static uintptr_t block;
static uint32_t block_granules;

static void set_up_block(void) {
  struct large_request request = {.alignment_bytes = 1,
                                  .tag = MAP_TAG_UNOWNED,
                                  .bytes = GRANULES * GRANULE_BYTES,
                                  .site = SITE};
  set_up();
  block = large_take(&request, &strays[0]);
  MODEL_REQUIRE(block);
  block_granules = range_info(granule_of(block))->granules;
}

static void free_block(void) { large_give(block, mine()); }

static void check_freed_once(void) {
  require_laws();
  size_t cached[2];
  unsigned class = large_class_of_granules(block_granules);
  MODEL_REQUIRE(range_cache_take(&(struct range_wish){class, SITE, 0}, cached, 2, mine()) == 1);
  MODEL_REQUIRE(cached[0] == granule_of(block) && dirty_granules() == 0);
  MODEL_REQUIRE(load_relaxed(&totals.large_live_bytes) == 0);
}

static const struct model_mutant twice_mutants[] = {
    {"freed in two steps", {{"note_freed", "cas", "owner_map", MODEL_SPLIT, 0}}}};

/* ---- the cache: kept by one thread, found by another, given back by a third ------------------ */

enum { CLASS = SLAB_CLASS_COUNT - LARGE_GRANULES_MIN + GRANULES };

static size_t find_one(void) {
  size_t found;
  return range_cache_take(&(struct range_wish){CLASS, SITE, 0}, &found, 1, mine()) ? found
                                                                                   : NO_GRANULE;
}

static void keep(void) {
  range_info(left)->stamp_ms = 1;
  range_cache_give(left, CLASS, mine());
}
static void find(void) {
  size_t found = find_one();
  hold(found);
  if (found != NO_GRANULE) range_info(found)->stamp_ms = 2;
}
static void purge_old(void) {
  struct purge old = {.now_ms = 10, .decay_ms = 5, .calls_left = SIZE_MAX};
  range_magazines_purge(&old, mine());
}
static void purge_young(void) {
  struct purge young = {.now_ms = 10, .decay_ms = 100, .calls_left = SIZE_MAX};
  range_cache_purge(&young, mine());
}

/* It is with one thread, in the cache, where it is looked for, or in the arena. */
static void check_cache(void) {
  require_laws();
  size_t found = find_one();
  MODEL_REQUIRE(holders_of(left) + (found == left) + dirty_granules() / GRANULES == 1);
}

/* ---- a thread's magazine: kept and taken by the thread, emptied by others -------------------- */

static struct range_magazines *own, *other;
static size_t far;

static void set_up_magazines(void) {
  set_up();
  own = range_magazines_make();
  MODEL_REQUIRE(own);
  thread_number_forget(); /* the threads have others than the one that sets up */
}

static void keep_own(void) {
  range_info(left)->stamp_ms = 1;
  if (!range_magazine_keep(own, CLASS, 0, left)) hold(left);
}
static void keep_and_take(void) {
  keep_own();
  size_t found = range_magazine_take(own, CLASS, 0);
  if (found == NO_GRANULE) return;
  hold(found);
  range_info(found)->stamp_ms = 2;
}

/* A step of a round: it comes to those that are listed. */
static void visit(void) {
  struct purge step = {.now_ms = 10, .decay_ms = 5, .calls_left = 96};
  range_magazines_purge(&step, mine());
}

/* With one thread, in the magazine, or in the arena. */
static void check_magazine(void) {
  require_laws();
  MODEL_REQUIRE(!load_relaxed(&own->lock.is_used) && !load_relaxed(&own->lock.is_closed));
  size_t found = range_magazine_take(own, CLASS, 0);
  MODEL_REQUIRE(holders_of(left) + (found == left) + dirty_granules() / GRANULES == 1);
}

/* Two threads keep their first at once, and a step comes: later ones find whatever it has left. */
static void set_up_two(void) {
  set_up_magazines();
  other = range_magazines_make();
  MODEL_REQUIRE(other);
  (void)take_fresh(1); /* no neighbours, which would merge */
  far = take_fresh(GRANULES);
}
static void keep_far(void) {
  range_info(far)->stamp_ms = 1;
  if (!range_magazine_keep(other, CLASS, 0, far)) hold(far);
}
static void set_up_kept(void) {
  set_up_two();
  keep_own();
  keep_far();
}
static void check_listed(void) {
  for (unsigned turn = 0; turn < 2; turn++) visit(); /* the rest of what began, and one more */
  require_laws();
  MODEL_REQUIRE(!load_relaxed(&own->bytes) && !load_relaxed(&other->bytes));
  MODEL_REQUIRE(holders_of(left) + holders_of(far) + dirty_granules() / GRANULES == 2);
}

static const struct model_mutant magazine_mutants[] = {
    {"entered in two steps", {{"biased_take", "exchange", "is_used", MODEL_WEAKEN, 0}}},
    {"left before the change", {{"biased_give", "store", "is_used", MODEL_WEAKEN, 0}}},
    {"opened before the change", {{"biased_open", "store", "is_closed", MODEL_WEAKEN, 0}}}};

static const struct model_mutant two_mutants[] = {
    {"closed in two steps", {{"biased_close", "cas", "is_closed", MODEL_SPLIT, 0}}}};

static const struct model_mutant listed_mutants[] = {
    {"joined in two steps", {{"list", "cas", "joined", MODEL_SPLIT, 0}}},
    {"joined before the link", {{"list", "cas", "joined", MODEL_WEAKEN, 0}}},
    {"taken in two steps", {{"close_listed", "exchange", "joined", MODEL_SPLIT, 0}}},
    {"taken before the link", {{"close_listed", "exchange", "joined", MODEL_WEAKEN, 0}}}};

static const struct model_mutant visit_mutants[] = {
    {"visited by two", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"given before the rest is written", {{"word_give", "cas", "word", MODEL_WEAKEN, 0}}}};

SCENARIO("range-merge", .set_up = set_up, .threads = {free_left, free_right, take_one},
         .check = check_merged, .always = no_spinning, MUTANTS(every_lock_mutant));
SCENARIO("range-extend", .set_up = set_up, .threads = {extend_left, free_right, take_one},
         .check = check_extended, .always = no_spinning, MUTANTS(every_lock_mutant));
SCENARIO("range-purge", .set_up = set_up_purge, .threads = {purge, take_one}, .check = check_purged,
         .always = no_spinning, MUTANTS(lock_mutants));
SCENARIO("range-purge-merge", .set_up = set_up_purge, .threads = {purge, free_right},
         .check = check_purged, .always = no_spinning, MUTANTS(lock_mutants));
SCENARIO("range-twice", .set_up = set_up_block, .threads = {free_block, free_block},
         .check = check_freed_once, .always = no_spinning, MUTANTS(twice_mutants));
SCENARIO("range-cache", .set_up = set_up, .threads = {keep, find, purge_old}, .check = check_cache,
         .always = no_spinning, MUTANTS(every_lock_mutant));
SCENARIO("range-magazine", .set_up = set_up_magazines, .threads = {keep_and_take, purge_old},
         .check = check_magazine, .always = no_spinning, MUTANTS(magazine_mutants));
SCENARIO("range-magazine-two", .set_up = set_up_magazines,
         .threads = {keep_own, purge_old, purge_old}, .check = check_magazine,
         .always = no_spinning, MUTANTS(two_mutants));
SCENARIO("range-magazine-listed", .set_up = set_up_magazines, .threads = {keep_and_take, visit},
         .check = check_magazine, .always = no_spinning, MUTANTS(magazine_mutants));
SCENARIO("range-magazine-joined", .set_up = set_up_two, .threads = {keep_own, keep_far, visit},
         .check = check_listed, .always = no_spinning, MUTANTS(listed_mutants));
SCENARIO("range-magazine-visited", .set_up = set_up_kept, .threads = {visit, visit},
         .check = check_listed, .in_order = true, .always = no_spinning, MUTANTS(visit_mutants));
SCENARIO("range-cache-young", .set_up = set_up, .threads = {keep, find, purge_young},
         .check = check_cache, .always = no_spinning, MUTANTS(every_lock_mutant));
