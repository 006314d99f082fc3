/* src/named/slab_set.c */
#include "named/slab_set.h"

#include "heaps.h"
#include "slab/slab.h"

enum { CLASS_1K = 29, MANY = 3000 };

static struct owner owner = {.tag = MAP_TAG_NAMED | 77 << MAP_TAG_SHIFT, .number = 77};
static struct slab_set set;
static struct slab *slabs[MANY];
static struct counters counters;

static void acquire(unsigned index) {
  slabs[index] = acquire_slab(index % FITTED_CLASS_FIRST, POOL_ALL, &counters);
  REQUIRE(slabs[index]);
  slab_own(slabs[index], &owner);
  REQUIRE(slab_set_make_room(&set, &owner));
  slab_set_add(&set, slabs[index]);
}

static void release(unsigned index) {
  REQUIRE(slab_try_release(slabs[index], &owner));
  slabs[index] = NULL;
}

/* Each slab that is held is found once, and nothing else. */
static void require_all(unsigned count) {
  size_t next = 0;
  unsigned held = 0, found = 0;
  for (unsigned index = 0; index < count; index++) held += slabs[index] != NULL;
  for (struct slab *slab; (slab = slab_set_next(&set, &owner, &next)); found++)
    REQUIRE(load_relaxed(&slab->owner) == &owner && slab_is_valid(slab));
  REQUIRE(found == held);
}

CHILD_TEST(few_and_many) {
  start_library();
  require_all(0);
  for (unsigned index = 0; index < MANY; index++) {
    acquire(index);
    if (index < 10 || index % 500 == 0) require_all(index + 1);
  }
  require_all(MANY);
  REQUIRE(set.table && set.used < 3u << set.table_bits >> 2);
}

/* What is given up and comes back, or comes back as another's, is found when it is the owner's. */
CHILD_TEST(come_and_go) {
  uint64_t random = 11;
  start_library();
  for (unsigned round = 0; round < 40000; round++) {
    unsigned index = (unsigned)random_below(&random, MANY / 4);
    if (slabs[index])
      release(index);
    else
      acquire(index);
    if (round % 4000 == 0) require_all(MANY);
  }
  require_all(MANY);
  for (unsigned index = 0; index < MANY; index++)
    if (slabs[index]) release(index);
  require_all(MANY);
  /* The next set that grows so far uses the tables again, with nothing left in them. */
  const struct slab_row *table = set.table;
  slab_set_clear(&set);
  REQUIRE(table && !set.table);
  for (unsigned index = 0; index < MANY / 4; index++) acquire(index);
  require_all(MANY);
  REQUIRE(set.table == table);
}
