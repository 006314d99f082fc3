/* src/slab: remote frees, the 0 -> 1 edge of `queued`, draining and releasing (pairs 1 to 3 of
 * docs/MEMORY_ORDER.md). */
#include "slabs.h"

static struct slab *slab, *second_slab;

static void drain(void) { drain_owner(&one); }

/* ---- two threads free blocks of one slab, its owner collects and drains ---------------------- */

static void set_up_current_slab(void) {
  set_up_owners();
  slab = own_full_slab(&one, CLASS_32K);
  one.bins[CLASS_32K].current = slab;
}

static void free_block_0(void) { free_remotely(slab, 1); }
static void free_block_1(void) { free_remotely(slab, 2); }

/* As the supply ladder does: the current slab's remote frees, whether it is queued or not. */
static void collect_and_drain_once(void) {
  latch_take(&one);
  slab_collect(slab, &one);
  pending_drain_class(&one, CLASS_32K, 1);
  latch_give(&one);
}
static void collect_and_drain(void) {
  collect_and_drain_once();
  drain();
}

static void check_edge(void) {
  require_ready(&one);
  require_owned(slab, &one, 0xFC);
  /* Both blocks are there for the owner, or on their way to it. */
  MODEL_REQUIRE(!load_relaxed(&slab->remote[0]) || is_queued_with(slab, &one));
  drain();
  MODEL_REQUIRE(slab->free_local == 2);
}

/* The same with a third thread that frees, in order. */
static void free_block_2(void) { free_remotely(slab, 4); }

static void check_three(void) {
  require_ready(&one);
  require_owned(slab, &one, 0xF8);
  drain();
  MODEL_REQUIRE(slab->free_local == 3);
}

static const struct model_mutant edge_mutants[] = {
    {"the bit set late", {{"slab_free_remote", "or", "remote", MODEL_WEAKEN, 0}}},
    {"an old `queued`", {{"slab_free_remote", "load", "queued", MODEL_WEAKEN, 0}}},
    {"`queued` cleared late", {{"pending_drain", "store", "queued", MODEL_WEAKEN, 0}}},
    {"an old `remote`", {{"slab_collect", "load", "remote", MODEL_WEAKEN, 0}}},
    {"`queued` taken in two steps", {{"slab_free_remote", "exchange", "queued", MODEL_SPLIT, 0}}},
    {"`remote` emptied in two steps", {{"slab_collect", "exchange", "remote", MODEL_SPLIT, 0}}},
    {"`remote` set in two steps", {{"slab_free_remote", "or", "remote", MODEL_SPLIT, 0}}},
    {"drained but still queued", {{"pending_drain", "store", "queued", MODEL_NOTHING, 0}}},
    {"the bit in `ready_mask` not set", {{"pending_push", "or", "ready_mask", MODEL_NOTHING, 0}}}};

/* ---- a slab of two bitmap words -------------------------------------------------------------- */

enum { CLASS_512 = 16, BLOCKS_512 = 128 };

static void set_up_words(void) {
  void *blocks[BLOCKS_512];
  set_up_owners();
  slab = own_new_slab(&one, CLASS_512);
  MODEL_REQUIRE(slab->capacity == BLOCKS_512 && slab->word_count == 2);
  MODEL_REQUIRE(slab_take(slab, &one, blocks, BLOCKS_512) == BLOCKS_512);
}

static void free_in_word_0(void) { slab_free_remote(slab, 0, 1, &strays[0]); }
static void free_in_word_1(void) { slab_free_remote(slab, 1, 1, &strays[1]); }
static void drain_words(void) {
  latch_take(&one);
  pending_drain_class(&one, CLASS_512, 1);
  latch_give(&one);
}

static void check_words(void) {
  require_ready(&one);
  bool is_left = load_relaxed(&slab->remote[0]) || load_relaxed(&slab->remote[1]);
  MODEL_REQUIRE(load_relaxed(&slab->queued) == is_queued_with(slab, &one));
  MODEL_REQUIRE(!is_left || load_relaxed(&slab->queued));
  drain_words();
  MODEL_REQUIRE(slab->free_local == 2 && slab->local[0] == 1 && slab->local[1] == 1);
}

static const struct model_mutant words_mutants[] = {
    {"an old `queued`", {{"slab_free_remote", "load", "queued", MODEL_WEAKEN, 0}}},
    {"`queued` cleared late", {{"pending_drain", "store", "queued", MODEL_WEAKEN, 0}}},
    {"an old `remote`", {{"slab_collect", "load", "remote", MODEL_WEAKEN, 0}}}};

/* ---- two slabs of one queue ------------------------------------------------------------------ */

static void set_up_two_slabs(void) {
  set_up_owners();
  options.route_p = true; /* then the time of the edge is written, which the queue hands over */
  slab = own_full_slab(&one, CLASS_32K);
  second_slab = own_full_slab(&one, CLASS_32K);
}

static void free_of_second(void) { free_remotely(second_slab, 1); }

static void drain_by_one(void) {
  latch_take(&one);
  struct slab *next = pending_next(&one, CLASS_32K);
  if (next) {
    MODEL_REQUIRE(next->edge_ns != 0);
    pending_drain(next, &one);
  }
  latch_give(&one);
}
static void drain_two(void) {
  drain_by_one();
  drain_by_one();
}

static void check_two(void) {
  require_ready(&one);
  require_owned(slab, &one, 0xFE);
  require_owned(second_slab, &one, 0xFE);
  drain();
  MODEL_REQUIRE(slab->free_local == 1 && second_slab->free_local == 1);
  MODEL_REQUIRE(!load_relaxed(&one.ready_mask));
}

static const struct model_mutant queue_mutants[] = {
    {"pushed in two steps", {{"pending_push", "cas", "pending", MODEL_SPLIT, 0}}},
    {"pushed before the link", {{"pending_push", "cas", "pending", MODEL_WEAKEN, 0}}},
    {"taken before what was pushed", {{"pending_next", "exchange", "pending", MODEL_WEAKEN, 0}}},
    {"taken in two steps", {{"pending_next", "exchange", "pending", MODEL_SPLIT, 0}}},
    {"what was queued since forgotten", {{"pending_next", "or", "ready_mask", MODEL_NOTHING, 0}}}};

/* ---- the last blocks come while the owner releases the slab, and another owns it anew -------- */

static struct slab *again; /* the slab that thread 2 got from the pool */

static void set_up_release(void) {
  void *blocks[SLAB_BLOCKS];
  set_up_owners();
  slab = own_new_slab(&one, CLASS_32K);
  MODEL_REQUIRE(slab_take(slab, &one, blocks, 2) == 2); /* blocks 0 and 1 are live */
  slab_list(slab, &one);
  again = NULL;
}

/* Releases it if it can, takes a slab out of the pool for owner two and frees a block of that
 * remotely. */
static void release_and_own_again(void) {
  void *blocks[SLAB_BLOCKS];
  latch_take(&one);
  owner_release_free_slabs(&one, SIZE_MAX);
  latch_give(&one);
  if (load_relaxed(&slab->owner) == &one) return;
  latch_take(&two);
  again = own_new_slab(&two, CLASS_32K);
  MODEL_REQUIRE(again == slab);
  MODEL_REQUIRE(slab_take(again, &two, blocks, SLAB_BLOCKS) == SLAB_BLOCKS);
  latch_give(&two);
  free_remotely(again, 0x10);
}

static void check_release(void) {
  require_ready(&one);
  require_ready(&two);
  if (again) {
    require_owned(slab, &two, 0xEF);
    MODEL_REQUIRE(is_queued_with(slab, &two) != is_queued_with(slab, &one));
    drain(); /* sends it on, if need be */
    MODEL_REQUIRE(is_queued_with(slab, &two) && !is_queued_with(slab, &one));
  } else {
    require_owned(slab, &one, 0);
    drain();
    if (load_relaxed(&slab->owner) == &one) MODEL_REQUIRE(slab->free_local == SLAB_BLOCKS);
  }
}

static const struct model_mutant release_mutants[] = {
    {"the late one looks no second time",
     {{"pending_enqueue", "exchange", "queued", MODEL_NOTHING, 1}}},
    {"the late one lets go late", {{"pending_enqueue", "store", "queued", MODEL_WEAKEN, 0}}},
    {"the late one sees an old owner", {{"pending_enqueue", "load", "owner", MODEL_WEAKEN, 0}}},
    {"the new owner written late", {{"slab_own", "store", "owner", MODEL_WEAKEN, 0}}},
    {"an old `queued`", {{"slab_free_remote", "load", "queued", MODEL_WEAKEN, 0}}},
    {"the right kept", {{"slab_try_release", "store", "queued", MODEL_NOTHING, 0}}}};

/* ---- the same, and the slab stays in the pool ------------------------------------------------ */

static void release(void) {
  latch_take(&one);
  owner_release_free_slabs(&one, SIZE_MAX);
  latch_give(&one);
}

static void check_released(void) {
  require_ready(&one);
  if (load_relaxed(&slab->owner)) {
    require_owned(slab, &one, 0);
    release();
  }
  require_in_pool(slab);
}

static const struct model_mutant pool_mutants[] = {
    {"released without the right to",
     {{"slab_try_release", "exchange", "queued", MODEL_NOTHING, 0},
      {"slab_try_release", "load", "queued", MODEL_NOTHING, 0},
      {"slab_try_release", "store", "queued", MODEL_NOTHING, 0}}},
    {"nobody lets go", {{"pending_enqueue", "store", "queued", MODEL_NOTHING, 0}}}};

SCENARIO("remote-edge", .set_up = set_up_current_slab,
         .threads = {free_block_0, free_block_1, collect_and_drain}, .check = check_edge,
         MUTANTS(edge_mutants));
SCENARIO("remote-words", .set_up = set_up_words,
         .threads = {free_in_word_0, free_in_word_1, drain_words}, .check = check_words,
         MUTANTS(words_mutants));
SCENARIO("remote-three", .set_up = set_up_current_slab,
         .threads = {free_block_0, free_block_1, free_block_2, collect_and_drain_once},
         .check = check_three, .in_order = true);
SCENARIO("remote-queue", .set_up = set_up_two_slabs,
         .threads = {free_block_0, free_of_second, drain_two}, .check = check_two,
         MUTANTS(queue_mutants));
SCENARIO("remote-release", .set_up = set_up_release,
         .threads = {free_block_0, free_block_1, release_and_own_again}, .check = check_release,
         MUTANTS(release_mutants));
SCENARIO("remote-pool", .set_up = set_up_release, .threads = {free_block_0, free_block_1, release},
         .check = check_released, MUTANTS(pool_mutants));
