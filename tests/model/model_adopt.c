/* src/slab/adopt.c: slabs that change hands while they are freed into (pairs 4 and 6 of
 * docs/MEMORY_ORDER.md). */
#include "slabs.h"

#define BIT_32K (UINT64_C(1) << CLASS_32K)

static struct slab *slab;

static void free_block_0(void) { free_remotely(slab, 1); }
static void free_block_1(void) { free_remotely(slab, 2); }

static struct slab *adopted;

static void use(struct slab *found) {
  if (!found) return;
  MODEL_REQUIRE(found->free_local != 0);
  if (found->is_listed) slab_unlist(found, &two);
  two.bins[CLASS_32K].current = found;
  adopted = found;
}

static void adopt(void) {
  latch_take(&two);
  use(adopt_from_ended(&two, CLASS_32K));
  latch_give(&two);
}

/* Free blocks of an owner that ended are found by the next who looks. */
static void check_hint(void) {
  bool is_adopted = load_relaxed(&slab->owner) == &two;
  bool has_free = slab->free_local || load_relaxed(&slab->remote[0]);
  bool is_on_offer = load_relaxed(&one.state) != OWNER_RUNNING;
  if (!is_adopted && has_free && is_on_offer) MODEL_REQUIRE(load_relaxed(&orphan_mask) & BIT_32K);
}

static void check_all_drained(uint64_t live) {
  require_ready(&one);
  require_ready(&two);
  struct owner *owner = load_relaxed(&slab->owner);
  MODEL_REQUIRE(adopted ? owner == &two : owner == &one);
  require_owned(slab, owner, live);
  /* Where it stands in the map, and how many its owner has. */
  MODEL_REQUIRE(load_relaxed(&slab->held_by) == map_entry(owner->tag, CLASS_32K));
  drain_owner(&one); /* sends on what is not its own */
  drain_owner(&two);
  slab_collect(slab, owner);
  MODEL_REQUIRE(slab->local[0] == (low_bits(SLAB_BLOCKS) & ~live));
}

/* ---- an owner ends while its block is freed, and somebody looks for slabs -------------------- */

static void set_up_ending(void) {
  set_up_owners();
  slab = own_full_slab(&one, CLASS_32K);
  store_relaxed(&orphan_mask, BIT_32K); /* of others before */
  adopted = NULL;
}

static void check_ending(void) {
  check_hint();
  check_all_drained(0xFE);
}

static const struct model_mutant ending_mutants[] = {
    {"the state changed late", {{"change_state", "store", "state", MODEL_WEAKEN, 0}}},
    {"an old state", {{"pending_push", "load", "state", MODEL_WEAKEN, 0}}},
    {"an old `ready_mask`", {{"classes_on_offer", "load", "ready_mask", MODEL_WEAKEN, 0}}},
    {"a bit not set", {{"orphan_mask_add", "or", "orphan_mask", MODEL_NOTHING, 0}}},
    {"an old `orphan_mask`", {{"orphan_mask_add", "load", "orphan_mask", MODEL_WEAKEN, 0}}},
    {"an old state under the cleared bit", {{"is_adoptable", "load", "state", MODEL_WEAKEN, 0}}},
    {"an old mask under a cleared bit",
     {{"pending_may_have", "load", "ready_mask", MODEL_WEAKEN, 0}}},
    {"the bit cleared late", {{"adopt_next", "and", "orphan_mask", MODEL_WEAKEN, 0}}}};

/* ---- the owner comes back (its heap is taken over) while its slab is adopted ----------------- */

static void set_up_ended(void) {
  void *blocks[SLAB_BLOCKS];
  set_up_owners();
  slab = own_new_slab(&one, CLASS_32K);
  MODEL_REQUIRE(slab_take(slab, &one, blocks, 3) == 3);
  slab_list(slab, &one);
  owner_park(&one);
  adopted = NULL;
}

static uint64_t taken; /* blocks that thread 0 has from the slab */

/* As parked_take, then a refill. */
static void come_back(void) {
  void *block;
  latch_take(&one);
  store_seq(&one.state, OWNER_RUNNING);
  latch_give(&one);
  latch_take(&one);
  owner_note_work(&one);
  pending_drain_class(&one, CLASS_32K, 1);
  struct slab *found = one.bins[CLASS_32K].partial;
  if (found) {
    MODEL_REQUIRE(slab_take(found, &one, &block, 1) == 1);
    taken = UINT64_C(1) << slab_index_of(found, (uintptr_t)block, "take");
  }
  latch_give(&one);
}

static void check_come_back(void) {
  check_all_drained(6 | taken);
  check_hint();
}

static const struct model_mutant every_latch_mutant[] = {
    {"the latch in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"the latch without acquire", {{"word_try", "cas", "word", MODEL_WEAKEN, 0}}},
    {"the latch without release",
     {{"latch_give", "store", "latch", MODEL_WEAKEN, 0},
      {"word_give", "cas", "word", MODEL_WEAKEN, 0}}},
    {"queued slabs not sent on",
     {{"pending_drain", "load", "owner", MODEL_NOTHING, (uintptr_t)&one}}}};

/* ---- Route P: from an owner that is alive ---------------------------------------------------- */

static void set_up_route_p(void) {
  set_up_owners();
  options.route_p = true;
  route_p = (struct route_p){.remote_min = 1};
  slab = own_full_slab(&one, CLASS_32K);
  adopted = NULL;
}

static void adopt_idle(void) {
  latch_take(&two);
  use(adopt_route_p(&two, CLASS_32K));
  latch_give(&two);
}

static void work(void) {
  latch_take(&one);
  owner_note_work(&one);
  pending_drain_class(&one, CLASS_32K, 1);
  latch_give(&one);
}

static void check_route_p(void) { check_all_drained(0xFC); }

/* ---- a sweep takes wholly free slabs of an owner that works ---------------------------------- */

static void set_up_sweep(void) {
  void *blocks[SLAB_BLOCKS];
  set_up_owners();
  slab = own_new_slab(&one, CLASS_32K);
  MODEL_REQUIRE(slab_take(slab, &one, blocks, 1) == 1);
  slab_list(slab, &one);
}

static void sweep(void) {
  struct purge round = PURGE_EVERYTHING;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    owner_sweep(owner, os_now_ns(), &round);
}

static void check_sweep(void) {
  require_ready(&one);
  MODEL_REQUIRE(load_relaxed(&one.state) == OWNER_RUNNING ||
                load_relaxed(&one.state) == OWNER_DORMANT);
  if (load_relaxed(&slab->owner) == NULL) {
    require_in_pool(slab);
    MODEL_REQUIRE(owner_map_entry(slab->base) == map_entry(MAP_TAG_NONE, CLASS_32K));
    return;
  }
  require_owned(slab, &one, 0);
  check_hint();
  drain_owner(&one);
  MODEL_REQUIRE(slab->free_local == SLAB_BLOCKS);
}

/* ---- two adopters and the supply ladder; the block that makes the slab worth it comes meanwhile  */

static struct owner three = {.number = 3, .tag = 3u << MAP_TAG_SHIFT};
static struct slab *passed[MODEL_THREADS_MAX];

static void set_up_supply(void) {
  set_up_owners();
  owner_register(&three);
  slab = own_full_slab(&one, CLASS_32K);
  one.bins[CLASS_32K].current = slab;
  owner_park(&one);
}

static void pass_supply(struct owner *owner) {
  latch_take(owner);
  struct supply supply = {.owner = owner, .class = CLASS_32K, .users = FOR_HARDENED};
  struct slab *found = supply_climb(&supply);
  MODEL_REQUIRE(found && found->free_local && load_relaxed(&found->owner) == owner);
  MODEL_REQUIRE(found == owner->bins[CLASS_32K].current);
  passed[model_self()] = found;
  latch_give(owner);
}
static void pass_supply_two(void) { pass_supply(&two); }
static void pass_supply_three(void) { pass_supply(&three); }

static void check_supply(void) {
  MODEL_REQUIRE(passed[0] != passed[1]);
  struct owner *owner = load_relaxed(&slab->owner);
  MODEL_REQUIRE(owner == (passed[0] == slab ? &two : passed[1] == slab ? &three : &one));
  require_owned(slab, owner, 0xFE);
  require_ready(&one);
  require_ready(&two);
  require_ready(&three);
  if (owner == &one) check_hint();
}

static const struct model_mutant supply_mutants[] = {
    {"the latch in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"a busy owner forgotten", {{"orphan_mask_add", "or", "orphan_mask", MODEL_NOTHING, 0}}}};

SCENARIO("adopt-ending", .set_up = set_up_ending, .threads = {park_one, free_block_0, adopt},
         .check = check_ending, MUTANTS(ending_mutants));
SCENARIO("adopt-come-back", .set_up = set_up_ended, .threads = {come_back, free_block_0, adopt},
         .check = check_come_back, MUTANTS(every_latch_mutant));
SCENARIO("adopt-route-p", .set_up = set_up_route_p,
         .threads = {work, free_block_0, adopt_idle, free_block_1}, .check = check_route_p,
         MUTANTS(every_latch_mutant));
SCENARIO("adopt-sweep", .set_up = set_up_sweep, .threads = {work, free_block_0, sweep},
         .check = check_sweep, MUTANTS(latch_mutants));
SCENARIO("adopt-gate", .set_up = set_up_supply,
         .threads = {pass_supply_two, pass_supply_three, free_block_0}, .check = check_supply,
         MUTANTS(supply_mutants));
