/* src/cache/supply.c: Route S, in its order, and what its rungs count. */
#include "cache/supply.h"

#include "owners.h"
#include "slab/adopt.h"

static struct slab *pass(void) {
  struct supply supply = {.owner = &mine, .class = CLASS_64, .users = FOR_MAGAZINE};
  latch_take(&mine);
  struct slab *slab = supply_climb(&supply);
  latch_give(&mine);
  return slab;
}

static void *taken_blocks[OWNER_BLOCKS_MAX];

static unsigned fill(struct supply *supply) {
  supply->taken = 0;
  latch_take(&mine);
  unsigned taken = supply_fill(supply);
  latch_give(&mine);
  return taken;
}

/* Leaves the current slab as a refill that took everything would. */
static void use_up(struct slab *slab) {
  void *blocks[OWNER_BLOCKS_MAX];
  slab_take(slab, &mine, blocks, slab->capacity);
}

CHILD_TEST(route_s_in_order) {
  options.route_p = false;
  struct slab *first = pass();
  REQUIRE(first && counted(&mine, COUNT_refill_new) == 1);
  REQUIRE(counted(&mine, COUNT_new_pages_forced) == 1 &&
          counted(&mine, COUNT_must_reuse_hits) == 0);
  REQUIRE(mine.bins[CLASS_64].current == first);
  use_up(first);

  /* All rungs could serve: the pending queue does first. */
  struct slab *partial = full_slab(&mine, CLASS_64), *queued = full_slab(&mine, CLASS_64);
  put_bits(partial, &mine, 0, 1);
  free_remotely(queued, 5);
  REQUIRE(pass() == queued && counted(&mine, COUNT_refill_pending) == 1);
  use_up(queued);

  /* Remote frees of the current slab that are in no queue any more. */
  store_relaxed(&queued->queued, 1);
  free_remotely(queued, 2);
  REQUIRE(pass() == queued && counted(&mine, COUNT_refill_active_drain) == 1);
  REQUIRE(counted(&mine, COUNT_active_drain_hits) == 1 && queued->free_local == 2);
  store_relaxed(&queued->queued, 0);
  use_up(queued);

  REQUIRE(pass() == partial && counted(&mine, COUNT_refill_partial) == 1 && !partial->is_listed);
  use_up(partial);
  REQUIRE(counted(&mine, COUNT_must_reuse_hits) == 3 && counted(&mine, COUNT_page_reuses) == 3);
  REQUIRE(counted(&mine, COUNT_refill_new) == 1);

  REQUIRE(pass() && counted(&mine, COUNT_refill_new) == 2); /* only now a new slab */
}

/* Then nobody has freed into the current slab, and it is not looked at. */
CHILD_TEST(one_thread) {
  os_fake.is_multi_threaded = false;
  use_up(pass());
  REQUIRE(pass() && counted(&mine, COUNT_refill_new) == 2);
  REQUIRE(counted(&mine, COUNT_active_drain_tries) == 0);
}

/* While the current slab has fresh blocks only, everything that came back goes before them. */
CHILD_TEST(fresh_blocks_last) {
  options.route_p = false;
  struct slab *fresh = pass();
  REQUIRE(pass() == fresh && counted(&mine, COUNT_refill_current) == 1);
  struct slab *partial = full_slab(&mine, CLASS_64), *queued = full_slab(&mine, CLASS_64);
  put_bits(partial, &mine, 0, 1);
  free_remotely(queued, 5);
  REQUIRE(pass() == queued && fresh->is_listed);
  use_up(queued);
  REQUIRE(pass() == partial && counted(&mine, COUNT_refill_partial) == 1);
  use_up(partial);
  REQUIRE(pass() == fresh && !fresh->is_listed && counted(&mine, COUNT_refill_new) == 1);
  REQUIRE(slab_reusable(fresh) == 0 && fresh->free_local == fresh->capacity);
}

/* What others freed into another owner's slabs goes before fresh blocks. */
CHILD_TEST(borrow_before_fresh) {
  void *blocks[2];
  struct supply supply = {
      .owner = &mine, .class = CLASS_4K, .users = FOR_MAGAZINE, .blocks = blocks, .wanted = 2};
  struct slab *listed = owned_slab(&mine, CLASS_4K), *theirs = full_slab(&other, CLASS_4K);
  slab_list(listed, &mine);
  free_remotely(theirs, 3);
  REQUIRE(fill(&supply) == 2 && slab_of_block((uintptr_t)blocks[0]) == theirs);
  REQUIRE(counted(&mine, COUNT_refill_borrowed) == 1 && counted(&mine, COUNT_must_reuse_hits) == 1);
  REQUIRE(fill(&supply) == 1); /* no more than was freed */
  REQUIRE(fill(&supply) && slab_of_block((uintptr_t)blocks[0]) == listed);
  REQUIRE(listed == mine.bins[CLASS_4K].current);
  REQUIRE(counted(&mine, COUNT_refill_partial) == 1 && counted(&mine, COUNT_refill_new) == 0);
}

CHILD_TEST(ended_before_fresh) {
  struct slab *own = pass(), *theirs = full_slab(&other, CLASS_64);
  put_bits(theirs, &other, 0, 1);
  REQUIRE(pass() == own && own->handed_out == 0); /* the other one runs */
  owner_park(&other);
  REQUIRE(pass() == theirs && counted(&mine, COUNT_refill_orphan) == 1);
  use_up(theirs);
  REQUIRE(pass() == own && counted(&mine, COUNT_refill_new) == 1);
}

/* A queued slab may be the current one itself. */
CHILD_TEST(the_current_slab_is_queued) {
  struct slab *current = pass();
  use_up(current);
  free_remotely(current, 7);
  REQUIRE(pass() == current && current->free_local == 7 &&
          counted(&mine, COUNT_refill_pending) == 1);
}

CHILD_TEST(budget_of_one_visit) {
  for (unsigned index = 0; index < 7; index++) free_remotely(full_slab(&mine, CLASS_64), 1);
  REQUIRE(pass() && counted(&mine, COUNT_pending_drained) == 4);
}

CHILD_TEST(no_memory) {
  os_fake_fail(OS_CALLS_ALL, 1, UINT64_MAX);
  REQUIRE(!pass() && counted(&mine, COUNT_refill_new) == 0);
  os_fake_fail_none();
  REQUIRE(pass() && counted(&mine, COUNT_refill_new) == 1);
}

static void grow(unsigned class, unsigned slabs) {
  struct supply supply = {.owner = &mine, .class = class, .users = FOR_MAGAZINE};
  for (; slabs; slabs--) {
    latch_take(&mine);
    struct slab *slab = supply_climb(&supply);
    REQUIRE(slab && slab_take(slab, &mine, taken_blocks, slab->capacity) == slab->capacity);
    latch_give(&mine);
  }
}

/* Of a class with many slabs, whose blocks are small, each fresh one gets its pages at once; a slab
 * that was in use has them. */
CHILD_TEST(populate_what_grows) {
  enum { MANY = 32 };
  grow(CLASS_64, MANY);
  grow(CLASS_4K, MANY + 2);
  REQUIRE(load_relaxed(&os_fake.populated_bytes) == 0);
  grow(CLASS_64, 2);
  REQUIRE(load_relaxed(&os_fake.populated_bytes) == 2 * GRANULE_BYTES);
  release_slab(acquire_slab(CLASS_64, POOL_ALL, &other.counters), 0, &other.counters);
  grow(CLASS_64, 1);
  REQUIRE(load_relaxed(&os_fake.populated_bytes) == 2 * GRANULE_BYTES);
}
