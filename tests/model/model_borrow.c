/* src/slab/borrow.c: blocks that change hands while their owner works, ends or borrows (pairs 1 to
 * 4 of docs/MEMORY_ORDER.md). */
#include "slab/batch_free.h"
#include "slabs.h"

static struct slab *slab, *other_slab;
/* Blocks that each thread got out of `slab`, as bits. */
static uint64_t got[MODEL_THREADS_MAX];

static void free_block_0(void) { free_remotely(slab, 1); }
static void free_block_1(void) { free_remotely(slab, 2); }

static void note_got(void *const *blocks, unsigned count) {
  for (unsigned each = 0; each < count; each++)
    got[model_self()] |= UINT64_C(1) << slab_index_of(slab, (uintptr_t)blocks[each], "take");
}
static uint64_t all_got(void) {
  uint64_t all = 0;
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++) {
    MODEL_REQUIRE((all & got[thread]) == 0); /* nobody else has it */
    all |= got[thread];
  }
  return all;
}

static void set_up(void) {
  set_up_owners();
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++) got[thread] = 0;
}

/* As a refill that finds nothing of its own. */
static void borrow(void) {
  void *blocks[SLAB_BLOCKS];
  latch_take(&two);
  unsigned borrowed = borrow_blocks(&two, CLASS_32K, blocks, 2);
  latch_give(&two);
  MODEL_REQUIRE(borrowed <= 2);
  note_got(blocks, borrowed);
}

/* ---- a lender works while another borrows, and what was borrowed goes home ------------------- */

static void set_up_lender(void) {
  set_up();
  slab = own_full_slab(&one, CLASS_32K);
}

/* As a refill of the lender's own. */
static void work(void) {
  void *block;
  latch_take(&one);
  owner_note_work(&one);
  pending_drain_class(&one, CLASS_32K, 1);
  struct slab *found = one.bins[CLASS_32K].partial;
  if (found) {
    MODEL_REQUIRE(found == slab && slab_take(found, &one, &block, 1) == 1);
    if (!found->free_local) slab_unlist(found, &one);
    note_got(&block, 1);
  }
  latch_give(&one);
}

static void borrow_and_return(void) {
  borrow();
  uint64_t borrowed = got[model_self()], first = borrowed & -borrowed;
  if (!first) return;
  got[model_self()] &= ~first;
  free_remotely(slab, first);
}

static void check_lender(void) {
  require_ready(&one);
  require_ready(&two);
  require_owned(slab, &one, 0xFC | all_got());
  drain_owner(&one);
  MODEL_REQUIRE(slab->local[0] == (3 & ~all_got()));
  MODEL_REQUIRE(load_relaxed(&one.bytes_out) ==
                (int64_t)(SLAB_BLOCKS - slab->free_local) * slab->block_bytes);
}

static const struct model_mutant lender_mutants[] = {
    {"the latch in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"the latch without acquire", {{"word_try", "cas", "word", MODEL_WEAKEN, 0}}},
    {"the latch without release", {{"latch_give", "store", "latch", MODEL_WEAKEN, 0}}},
    {"`queued` cleared late", {{"pending_drain", "store", "queued", MODEL_WEAKEN, 0}}},
    {"an old `remote`", {{"slab_collect", "load", "remote", MODEL_WEAKEN, 0}}}};

/* ---- the lender ends meanwhile: what is left must be found by who adopts --------------------- */

static void check_ending(void) {
  require_ready(&one);
  require_owned(slab, &one, 0xFC | all_got());
  if (slab->free_local || load_relaxed(&slab->remote[0]))
    MODEL_REQUIRE(load_relaxed(&orphan_mask) >> CLASS_32K & 1);
  drain_owner(&one);
  MODEL_REQUIRE(slab->local[0] == (3 & ~all_got()));
}

static const struct model_mutant ending_mutants[] = {
    {"the state changed late", {{"change_state", "store", "state", MODEL_WEAKEN, 0}}},
    {"an old state", {{"pending_push", "load", "state", MODEL_WEAKEN, 0}}},
    {"a bit not set", {{"orphan_mask_add", "or", "orphan_mask", MODEL_NOTHING, 0}}}};

/* ---- two that borrow from each other, each with its own latch held --------------------------- */

static void set_up_each_other(void) {
  set_up();
  slab = own_full_slab(&one, CLASS_32K);
  other_slab = own_full_slab(&two, CLASS_32K);
  slab_free_remote(other_slab, 0, 1, &strays[0]);
}

static unsigned borrowed_by_one;

/* Each looks through its own queue before it goes to the other's. */
static void borrow_from_two(void) {
  void *block;
  latch_take(&one);
  pending_drain_class(&one, CLASS_32K, 1);
  borrowed_by_one = borrow_blocks(&one, CLASS_32K, &block, 1);
  latch_give(&one);
  if (borrowed_by_one) MODEL_REQUIRE((uintptr_t)block == other_slab->base);
}
static void borrow_from_one(void) {
  void *blocks[SLAB_BLOCKS];
  latch_take(&two);
  pending_drain_class(&two, CLASS_32K, 1);
  unsigned borrowed = borrow_blocks(&two, CLASS_32K, blocks, 1);
  latch_give(&two);
  note_got(blocks, borrowed);
}

static void check_each_other(void) {
  require_ready(&one);
  require_ready(&two);
  require_owned(slab, &one, 0xFE | all_got());
  require_owned(other_slab, &two, 0xFE | borrowed_by_one);
  drain_owner(&one);
  drain_owner(&two);
  MODEL_REQUIRE(slab->local[0] == (1 & ~all_got()));
  MODEL_REQUIRE(other_slab->local[0] == (1u ^ borrowed_by_one));
}

/* ---- blocks that the lender has freed itself ------------------------------------------------- */

static void set_up_listed(void) {
  set_up_lender();
  MODEL_REQUIRE(slab_put_one(slab, CLASS_32K, 0, &one));
}

/* Frees one more, and takes one. */
static void free_and_take(void) {
  void *block;
  latch_take(&one);
  owner_note_work(&one);
  batch_free(&one, (void *[]){(void *)(slab->base + slab->block_bytes)}, 1, &one.counters);
  MODEL_REQUIRE(one.bins[CLASS_32K].partial == slab && slab_take(slab, &one, &block, 1) == 1);
  if (!slab->free_local) slab_unlist(slab, &one);
  note_got(&block, 1);
  latch_give(&one);
}

static void check_listed(void) {
  require_ready(&one);
  require_owned(slab, &one, 0xFC | all_got());
  MODEL_REQUIRE(slab->local[0] == (3 & ~all_got()));
  if (slab->free_local) MODEL_REQUIRE(load_relaxed(&one.spare_mask) >> CLASS_32K & 1);
}

static const struct model_mutant listed_mutants[] = {
    {"the latch in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"the latch without acquire", {{"word_try", "cas", "word", MODEL_WEAKEN, 0}}},
    {"the latch without release", {{"latch_give", "store", "latch", MODEL_WEAKEN, 0}}}};

SCENARIO("borrow-listed", .set_up = set_up_listed, .threads = {free_and_take, borrow},
         .check = check_listed, MUTANTS(listed_mutants));
SCENARIO("borrow-return", .set_up = set_up_lender,
         .threads = {work, free_block_0, borrow_and_return, free_block_1}, .check = check_lender,
         MUTANTS(lender_mutants));
SCENARIO("borrow-ending", .set_up = set_up_lender,
         .threads = {park_one, free_block_0, borrow, free_block_1}, .check = check_ending,
         MUTANTS(ending_mutants));
SCENARIO("borrow-each-other", .set_up = set_up_each_other,
         .threads = {borrow_from_two, free_block_0, borrow_from_one}, .check = check_each_other,
         MUTANTS(latch_mutants));
