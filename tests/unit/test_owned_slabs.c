/* owner_link_slab, owner_unlink_slab of src/slab/owner.c */
#include "heaps.h"
#include "slab/adopt.h"
#include "slab/slab.h"

enum { MANY = 3000 };

static struct owner owner = {.tag = MAP_TAG_NAMED | 77 << MAP_TAG_SHIFT, .number = 77};
static struct owner lane = {.tag = MAP_TAG_NAMED | 78 << MAP_TAG_SHIFT, .number = 78};
static struct slab *slabs[MANY];
static struct counters counters;

static void acquire(unsigned index) {
  slabs[index] = acquire_slab(index % FITTED_CLASS_FIRST, POOL_ALL, &counters);
  REQUIRE(slabs[index]);
  slab_own(slabs[index], &owner);
}

static void release(unsigned index) {
  REQUIRE(slab_try_release(slabs[index], &owner));
  slabs[index] = NULL;
}

static unsigned count_owned(const struct owner *of) {
  unsigned found = 0;
  for (struct slab *slab = of->owned; slab; slab = slab->next_owned, found++)
    REQUIRE(load_relaxed(&slab->owner) == of && slab_is_valid(slab));
  REQUIRE(owner_is_valid(of));
  return found;
}

/* Each slab that is held is found once, and nothing else. */
static void require_all(void) {
  unsigned held = 0;
  for (unsigned index = 0; index < MANY; index++) held += slabs[index] != NULL;
  REQUIRE(count_owned(&owner) == held);
}

CHILD_TEST(come_and_go) {
  uint64_t random = 11;
  start_library();
  require_all();
  for (unsigned round = 0; round < 40000; round++) {
    unsigned index = (unsigned)random_below(&random, MANY);
    if (slabs[index])
      release(index);
    else
      acquire(index);
    if (round % 4000 == 0) require_all();
  }
  for (unsigned index = 0; index < MANY; index++)
    if (slabs[index]) release(index);
  require_all();
  REQUIRE(!owner.owned);
}

/* A lane's list gains what the heap's list loses: first, last and middle slabs. */
CHILD_TEST(adopted) {
  start_library();
  latch_take(&owner);
  latch_take(&lane);
  for (unsigned index = 0; index < 5; index++) {
    acquire(index);
    slab_list(slabs[index], &owner);
  }
  for (unsigned index = 0, adopted = 1; index < 5; index = (index + 2) % 5, adopted++) {
    struct slab *slab = adopt_listed(&owner, &lane, slabs[index]->class);
    REQUIRE(slab == slabs[index] && lane.owned == slab);
    slab_list(slab, &lane);
    REQUIRE(count_owned(&owner) == 5 - adopted && count_owned(&lane) == adopted);
    if (adopted == 5) break;
  }
}

/* A thread's owner does not pay for links that nobody follows. */
CHILD_TEST(of_a_thread) {
  static struct owner thread = {.tag = MAP_TAG_THREADS, .number = 3};
  start_library();
  struct slab *slab = acquire_slab(1, POOL_ALL, &counters);
  slab_own(slab, &thread);
  REQUIRE(!thread.owned);
  REQUIRE(slab_try_release(slab, &thread));
}
