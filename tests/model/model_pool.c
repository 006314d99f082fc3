/* src/pool/slab_pool.c: slots and SuperSlabs that change hands (pair 5 of docs/MEMORY_ORDER.md),
 * and the tagged stack below it. */
#include "slabs.h"

enum { CLASS_8K = 32, RUNS = SLOTS_PER_SUPERSLAB / 4, HELD_MAX = 16 };

/* ---- what threads hold, and the sum of all --------------------------------------------------- */

static struct slab *held[MODEL_THREADS_MAX][HELD_MAX]; /* a row for each thread: no races */
static unsigned held_count[MODEL_THREADS_MAX];
static struct slab *prepared[HELD_MAX]; /* by set_up */

static void hold(struct slab *slab, unsigned class) {
  MODEL_REQUIRE(slab && slab->class == class && load_relaxed(&slab->state) == SLOT_ACTIVE);
  MODEL_REQUIRE(slab->free_local == slab->capacity);
  unsigned thread = (unsigned)model_self();
  held[thread][held_count[thread]++] = slab;
  slab->free_local = slab->capacity; /* a write: two holders would race here */
}

static void acquire(unsigned class) {
  hold(acquire_slab(class, POOL_ALL, &strays[model_self()]), class);
}

static void release(struct slab *slab) { release_slab(slab, 0, &strays[model_self()]); }

static uint32_t slots_of(const struct slab *slab) {
  return (uint32_t)low_bits(slab->slot_count) << granule_of(slab->base) % GRANULES_PER_CHUNK;
}

static const struct superslab *superslab_of(const struct slab *slab) {
  return superslab_of_granule(granule_of(slab->base));
}

/* Adds slots to those of a thread: no other thread may have them. */
static void claim(uint32_t *claimed, uint32_t slots) {
  MODEL_REQUIRE((*claimed & slots) == 0);
  *claimed |= slots;
}

static uint32_t held_in(const struct superslab *superslab) {
  uint32_t claimed = 0;
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++)
    for (unsigned index = 0; index < held_count[thread]; index++)
      if (superslab_of(held[thread][index]) == superslab)
        claim(&claimed, slots_of(held[thread][index]));
  return claimed;
}

/* Each slot of the first SuperSlab is UNUSED, EMPTY or held, and whatever is free can be had. */
static void check_slots(uint32_t live) {
  const struct superslab *superslab = superslab_of(prepared[0]);
  uint32_t claimed = held_in(superslab);
  claim(&claimed, live);
  claim(&claimed, slots_unused(load_relaxed(&superslab->slots)));
  /* A request gets a left slot first, and only then a new one. */
  struct slab *slab;
  uint32_t taken = live | held_in(superslab);
  for (unsigned class = CLASS_28K; class <= CLASS_32K; class ++)
    while ((slab = acquire_slab(class, POOL_ALL, &strays[0])) && superslab_of(slab) == superslab) {
      claim(&taken, slots_of(slab));
      MODEL_REQUIRE(slab->class == class);
    }
  MODEL_REQUIRE(taken == ALL_SLOTS);
}

static void prepare(unsigned count, unsigned class) {
  set_up_pool();
  store_relaxed(&purge_state, PURGE_ARMED);
  for (unsigned index = 0; index < count; index++)
    prepared[index] = acquire_slab(class, POOL_ALL, &strays[0]);
}

static void release_prepared(unsigned from, unsigned to) {
  for (unsigned index = from; index < to; index++) release_slab(prepared[index], 0, &strays[0]);
}

/* All eight runs of a SuperSlab are taken, one of them is EMPTY. */
static void set_up_full_superslab(void) {
  prepare(RUNS, CLASS_32K);
  MODEL_REQUIRE(superslab_of(prepared[0]) == superslab_of(prepared[RUNS - 1]));
  release_slab(prepared[0], 0, &strays[0]);
}

/* ---- slots come back while others are wanted ------------------------------------------------- */

/* The class keeps one EMPTY slab: these become UNUSED. */
static void release_0(void) { release(prepared[0]); }
static void release_1(void) { release(prepared[1]); }
static void acquire_other(void) { acquire(CLASS_28K); }

static void set_up_one_unused(void) {
  set_up_full_superslab();
  release_slab(prepared[2], 0, &strays[0]);
}

static uint32_t live_slots(unsigned from, unsigned to) {
  uint32_t live = 0;
  for (unsigned index = from; index < to; index++) live |= slots_of(prepared[index]);
  return live;
}
static void check_from_2(void) { check_slots(live_slots(3, RUNS)); }

static const struct model_mutant slot_mutants[] = {
    {"closed without a second look", {{"slot_index_note", "load", "slots", MODEL_NOTHING, 0}}},
    {"an old `slots` when closing", {{"slot_index_note", "load", "slots", MODEL_WEAKEN, 0}}},
    {"closed late", {{"lower", "and", "words", MODEL_WEAKEN, 0}}},
    {"an old index when opening", {{"slot_index_note", "load", "words", MODEL_WEAKEN, 0}}},
    {"slots come back late", {{"slots_return", "add", "slots", MODEL_WEAKEN, 0}}},
    {"slots come back in two steps", {{"slots_return", "add", "slots", MODEL_SPLIT, 0}}},
    {"slots taken in two steps", {{"take_run_of", "cas", "slots", MODEL_SPLIT, 0}}},
    {"slots taken without acquire",
     {{"take_run_of", "cas", "slots", MODEL_WEAKEN, 0},
      {"take_run_of", "load", "slots", MODEL_WEAKEN, 0},
      {"find_below", "load", "words", MODEL_WEAKEN, 0}}}};

/* ---- the last run comes back: the SuperSlab is kept; another is wanted ----------------------- */

static void set_up_last_runs(void) {
  prepare(RUNS + 1, CLASS_32K);
  /* Another SuperSlab has what the class keeps. */
  release_slab(prepared[RUNS], 0, &strays[0]);
  release_prepared(3, RUNS);
  release_slab(prepared[2], 0, &strays[0]);
}

/* Two SuperSlabs: each slot has one holder, and kept ones are wholly free. */
static void check_superslabs(void) {
  const struct superslab *first = superslab_of(prepared[1]);
  uint32_t claimed = held_in(first);
  claim(&claimed, slots_unused(load_relaxed(&first->slots)));
  /* The other one is kept too when what the class kept in it was opened. */
  bool may_be_kept = load_relaxed(&totals.superslabs_kept) != 0;
  MODEL_REQUIRE(claimed == ALL_SLOTS || (may_be_kept && claimed == 0));
  /* All of it can be had again. */
  uint32_t taken = held_in(first);
  struct slab *slab;
  for (unsigned tries = 0; tries < 3 * RUNS && taken != ALL_SLOTS; tries++) {
    slab = acquire_slab(CLASS_28K, POOL_ALL, &strays[0]);
    if (superslab_of(slab) == first) claim(&taken, slots_of(slab));
  }
  MODEL_REQUIRE(taken == ALL_SLOTS);
}

static const struct model_mutant superslab_mutants[] = {
    {"kept in two steps", {{"slots_return", "add", "slots", MODEL_SPLIT, 0}}}};

/* ---- kept SuperSlabs are wanted -------------------------------------------------------------- */

/* One is kept once its last slab comes back, and the other has no UNUSED slot. */
static void set_up_kept_soon(void) {
  prepare(2 * RUNS, CLASS_32K);
  release_slab(prepared[2 * RUNS - 1], 0, &strays[0]);
  release_prepared(1, RUNS);
}

static void set_up_kept(void) {
  set_up_kept_soon();
  release_slab(prepared[0], 0, &strays[0]);
  MODEL_REQUIRE(load_relaxed(&totals.superslabs_kept) == 1);
}

static void acquire_fresh(void) {
  struct slab *slab = acquire_slab(CLASS_28K, POOL_FRESH, &strays[model_self()]);
  if (slab) hold(slab, CLASS_28K); /* else the other thread is dividing it */
}

static const struct model_mutant kept_mutants[] = {
    {"taken in two steps", {{"take_whole", "cas", "slots", MODEL_SPLIT, 0}}}};

/* ---- EMPTY slabs of one class ---------------------------------------------------------------- */

static void set_up_empty(void) {
  prepare(3, CLASS_8K);
  release_prepared(0, 3);
}

static void acquire_and_release(void) {
  unsigned thread = (unsigned)model_self();
  acquire(CLASS_8K);
  held_count[thread] = 0;
  release(held[thread][0]);
}

/* Two out, the first of them back: the other thread sees the same value again. */
static void acquire_two_release_one(void) {
  unsigned thread = (unsigned)model_self();
  acquire(CLASS_8K);
  acquire(CLASS_8K);
  struct slab *slab = held[thread][0];
  held[thread][0] = held[thread][1];
  held_count[thread] = 1;
  release(slab);
}

static void check_empty(void) {
  const struct superslab *superslab = superslab_of(prepared[0]);
  uint32_t claimed = held_in(superslab);
  claim(&claimed, slots_unused(load_relaxed(&superslab->slots)));
  for (unsigned index = 0; index < 4; index++) {
    struct slab *slab = acquire_slab(CLASS_8K, POOL_ALL, &strays[0]);
    if (index < 3 - count_bits(held_in(superslab))) claim(&claimed, slots_of(slab));
  }
  MODEL_REQUIRE(claimed == ALL_SLOTS);
}

static const struct model_mutant empty_mutants_of_two[] = {
    {"popped in two steps", {{"empty_slabs_pop", "cas", "place", MODEL_SPLIT, 0}}},
    {"pushed in two steps", {{"empty_slabs_push", "cas", "place", MODEL_SPLIT, 0}}},
    {"pushed without release", {{"empty_slabs_push", "cas", "place", MODEL_WEAKEN, 0}}},
    {"popped without acquire", {{"empty_slabs_pop", "cas", "place", MODEL_WEAKEN, 0}}}};

/* ---- a round of purging among them ----------------------------------------------------------- */

static void purge(void) {
  struct purge round = {.now_ms = (uint32_t)os_now_coarse_ms() + 1, .calls_left = SIZE_MAX};
  slab_pool_purge(&round);
}

/* No thread holds the slots whose pages the system takes. */
static void look_at_purge(uintptr_t address, size_t bytes) {
  for (uintptr_t end = address + bytes; address < end; address += GRANULE_BYTES) {
    const struct slab *slab = slab_of_granule(granule_of(address));
    if (!slab->base) continue; /* was never used */
    slab = slab_of_block(address);
    MODEL_REQUIRE(load_relaxed(&slab->state) != SLOT_ACTIVE);
  }
}

static void set_up_purge(void) {
  set_up_one_unused();
  model_os.look_at_purge = look_at_purge;
}

static void release_and_acquire(void) {
  release(prepared[1]);
  acquire(CLASS_28K);
}

static void release_and_acquire_empty(void) {
  release(prepared[1]);
  acquire(CLASS_32K);
}

static const struct model_mutant empty_mutants[] = {
    {"the EMPTY one taken in two steps", {{"empty_slabs_pop", "cas", "place", MODEL_SPLIT, 0}}}};

static const struct model_mutant purge_mutants[] = {
    {"purged without holding", {{"slots_hold", "and", "slots", MODEL_NOTHING, UINT64_MAX}}},
    {"held in two steps", {{"slots_hold", "and", "slots", MODEL_SPLIT, 0}}}};

SCENARIO("pool-slots", .set_up = set_up_one_unused,
         .threads = {release_1, acquire_other, acquire_other}, .check = check_from_2,
         MUTANTS(slot_mutants));
SCENARIO("pool-superslab", .set_up = set_up_last_runs,
         .threads = {release_0, release_1, acquire_other}, .check = check_superslabs,
         MUTANTS(superslab_mutants));
SCENARIO("pool-kept", .set_up = set_up_kept, .threads = {acquire_fresh, acquire_fresh},
         .check = check_superslabs, MUTANTS(kept_mutants));
SCENARIO("pool-kept-soon", .set_up = set_up_kept_soon, .threads = {release_0, acquire_fresh},
         .check = check_superslabs);
SCENARIO("pool-empty", .set_up = set_up_empty,
         .threads = {acquire_and_release, acquire_two_release_one}, .check = check_empty,
         MUTANTS(empty_mutants_of_two));
SCENARIO("pool-purge", .set_up = set_up_purge, .threads = {purge, release_and_acquire},
         .check = check_from_2, MUTANTS(purge_mutants));
SCENARIO("pool-purge-three", .set_up = set_up_purge, .threads = {purge, release_1, acquire_other},
         .check = check_from_2, .in_order = true);
SCENARIO("pool-purge-empty", .set_up = set_up_purge, .threads = {purge, release_and_acquire_empty},
         .check = check_from_2, MUTANTS(empty_mutants));
