/* src/profile/sampled_slabs.c */
#include "profile/sampled_slabs.h"

#include "profiles.h"
#include "report/report.h"
#include "slab/slab.h"

BEFORE(child) { start_library(); }
enum { CLASS_64 = 4, MANY = 5000 };

static void *blocks[MANY];
static struct counters counters;

static void *take(unsigned class) {
  void *block = sampled_slabs_take(class, &counters);
  REQUIRE(block && map_entry_is_sampled(owner_map_entry((uintptr_t)block)));
  REQUIRE(map_slab_class(owner_map_entry((uintptr_t)block)) == class);
  REQUIRE(sampled_slabs_has((uintptr_t)block));
  REQUIRE(slab_is_valid(slab_of_block((uintptr_t)block)));
  return block;
}

static unsigned slabs_of_samples(void) {
  unsigned slabs = 0;
  for (size_t granule = 0; granule < load_relaxed(&window.granule_count); granule++)
    slabs += map_entry_is_sampled(load_relaxed(&window.owner_map[granule]));
  return slabs;
}

/* Of each class: all blocks are others, and none is another class's. */
CHILD_TEST(take_and_give) {
  for (unsigned class = 0; class < FITTED_CLASS_FIRST; class ++) {
    unsigned count = slab_shapes[class].capacity * 2u + 3;
    if (count > MANY) count = MANY;
    for (unsigned index = 0; index < count; index++) {
      blocks[index] = take(class);
      memset(blocks[index], 0xA5, class_bytes(class));
    }
    for (unsigned index = 0; index < count; index++) {
      REQUIRE(sampled_slabs_give(blocks[index], &counters));
      REQUIRE(!map_entry_is_sampled(owner_map_entry((uintptr_t)blocks[index])) ||
              !sampled_slabs_has((uintptr_t)blocks[index]));
    }
  }
  sampled_slabs_release(&counters);
  REQUIRE(slabs_of_samples() == 0);
}

/* What comes back is used again: the slabs do not grow in number. */
CHILD_TEST(reuse) {
  uint64_t random = 5;
  for (unsigned index = 0; index < MANY; index++) blocks[index] = take(CLASS_64);
  unsigned slabs = slabs_of_samples();
  for (unsigned round = 0; round < 200000; round++) {
    size_t index = random_below(&random, MANY);
    REQUIRE(sampled_slabs_give(blocks[index], &counters));
    blocks[index] = take(CLASS_64);
  }
  REQUIRE(slabs_of_samples() <= slabs + 1);
}

/* A thread that was cut off inside by a fork is forgotten in the child. */
CHILD_TEST(release_after_fork) {
  void *block = take(CLASS_64);
  sampled_slabs_after_fork();
  REQUIRE(sampled_slabs_give(block, &counters));
  sampled_slabs_release(&counters);
  REQUIRE(slabs_of_samples() == 0);
}

/* A signal handler interrupts its thread inside, and forks: here while a double free is reported.  The child's other threads are
 * not alone then, and in the end nobody is. */
static void *other_block;

static void *give_other(void *unused) {
  REQUIRE(sampled_slabs_give(other_block, &counters));
  return unused;
}

static bool be_a_child_inside(void) {
  sampled_slabs_after_fork();
  on_a_thread(give_other, NULL);
  REQUIRE(slabs_of_samples() == 1);
  return false;
}

CHILD_TEST(fork_inside) {
  void *block = take(CLASS_64);
  other_block = take(CLASS_64);
  REQUIRE(sampled_slabs_give(block, &counters));
  misuse_action = MISUSE_WARN;
  misuse_may_walk = be_a_child_inside;
  REQUIRE(!sampled_slabs_give(block, &counters));
  store_relaxed(&profile_state.status, PROFILE_IS_ON);
  /* What cannot be released is used again: it does not grow in number, however long that goes on. */
  for (unsigned round = 0; round < 100; round++) {
    for (unsigned index = 0; index < MANY; index++) blocks[index] = take(CLASS_64);
    for (unsigned index = 0; index < MANY; index++)
      REQUIRE(sampled_slabs_give(blocks[index], &counters));
    REQUIRE(slabs_of_samples() <= MANY / (unsigned)slab_shapes[CLASS_64].capacity + 2);
  }
}

REPORT_TEST(double_free, "hakmem: double free of 0x", ": the block of 64 bytes is free already") {
  void *block = take(CLASS_64), *other = take(CLASS_64);
  sampled_slabs_give(block, &counters);
  REQUIRE(other);
  sampled_slabs_give(block, &counters);
}

REPORT_TEST(misaligned, "hakmem: ", "64 bytes") {
  sampled_slabs_give((char *)take(CLASS_64) + 16, &counters);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, HELD = 100, ROUNDS = 20000 };

static void *take_and_give_at_random(void *seed) {
  void *held[HELD] = {0};
  struct counters own = {0};
  uint64_t random = (uintptr_t)seed;
  for (unsigned round = 0; round < ROUNDS; round++) {
    size_t index = random_below(&random, HELD);
    if (held[index]) {
      REQUIRE(*(void **)held[index] == seed); /* nobody else has it */
      REQUIRE(sampled_slabs_give(held[index], &own));
      held[index] = NULL;
    } else {
      held[index] = sampled_slabs_take(35 + (unsigned)index % 3, &own);
      REQUIRE(held[index]);
      *(void **)held[index] = seed;
    }
  }
  for (unsigned index = 0; index < HELD; index++)
    if (held[index]) REQUIRE(sampled_slabs_give(held[index], &own));
  return NULL;
}

CHILD_TEST(share) {
  on_threads(THREADS, take_and_give_at_random, (void *)1, 1); /* the seeds */
  sampled_slabs_release(&counters);
  REQUIRE(slabs_of_samples() == 0);
}
