/* src/heap/sampling.c, src/cache/divert.c and src/profile: samples of whole programs stand for what
 * those did. */
#include "heap/sampling.h"

#include "profile/control.h"
#include "profiles.h"

BEFORE(child) { start_library(); }

/* ---- bias ------------------------------------------------------------------------------------ */

enum { KEPT = 20000, TURNS = 10 };
#define PERIOD UINT64_C(64)

static void *kept[KEPT];

enum { TEMPORARY_FIRST, LASTING_FIRST, HELD_BETWEEN };

/* A block that lasts and one that does not, of the same class, in turns: of those that miss their
 * magazine all are the one kind's, whichever comes first at a new depth. */
static void leak_once(int pattern, void **lasting) {
  void *temporary = NULL;
  if (pattern != LASTING_FIRST) temporary = must_malloc(64);
  if (pattern == TEMPORARY_FIRST) hak_free(temporary);
  *lasting = must_malloc(64);
  if (pattern == LASTING_FIRST) temporary = must_malloc(64);
  if (pattern != TEMPORARY_FIRST) hak_free(temporary);
}

CHILD_TESTS(leaks, int, pattern, TEMPORARY_FIRST, LASTING_FIRST, HELD_BETWEEN) {
  double live = 0;
  start_library();
  store_relaxed(&profile_control.stack_depth, 1); /* bias is the sampler's alone: no long walks */
  switch_on(PERIOD);
  for (unsigned turn = 0; turn < TURNS; turn++) {
    for (unsigned index = 0; index < KEPT; index++) leak_once(pattern, &kept[index]);
    live += estimate_live(0).blocks;
    for (unsigned index = 0; index < KEPT; index++) hak_free(kept[index]);
    REQUIRE(estimate_live(0).samples == 0);
  }
  double count = (double)(KEPT * TURNS);
  REQUIRE_NEAR(live, count, 0.01);
  REQUIRE_NEAR(estimate_sites(false).blocks, 2 * count, 0.01);
  REQUIRE_NEAR(estimate_sites(true).blocks, 2 * count, 0.01);
}

/* What a sampler of misses would see of the same: nothing of the one kind, all of the other.  So it
 * must not be one. */
CHILD_TEST(miss_only) {
  unsigned misses[2] = {0, 0};
  for (unsigned index = 0; index < KEPT; index++) {
    uint64_t before = heap_of_thread->owner.counters.value[COUNT_refills];
    void *temporary = must_malloc(64);
    uint64_t between = heap_of_thread->owner.counters.value[COUNT_refills];
    hak_free(temporary);
    kept[index] = must_malloc(64);
    misses[0] += between != before;
    misses[1] += heap_of_thread->owner.counters.value[COUNT_refills] != between;
  }
  REQUIRE(misses[0] > 100 && misses[1] == 0);
}

/* Sizes around R, from 8 bytes to Large ones: of each class the estimate comes near the exact
 * count. */
CHILD_TEST(all_sizes) {
  enum { ROUNDS = 1500000 };
  uint64_t random = 11;
  double bytes = 0, blocks = 0;
  store_relaxed(&profile_control.stack_depth, 1);
  switch_on(1024);
  hak_free(hak_malloc(8)); /* looks */
  for (unsigned round = 0; round < ROUNDS; round++) {
    size_t size = (size_t)1 << random_below(&random, 14);
    size += random_below(&random, size);
    void *block = must_malloc(size);
    bytes += (double)hak_malloc_usable_size(block);
    blocks++;
    hak_free(block);
  }
  struct estimate found = estimate_sites(false);
  REQUIRE_NEAR(found.bytes, bytes, 0.01);
  REQUIRE_NEAR(found.blocks, blocks, 0.01);
}

/* Chains of realloc, into Large and Big sizes: each step frees the block before, wherever it
 * stays. */
CHILD_TEST(grow) {
  enum { ROUNDS = 3000 };
  uint64_t random = 12;
  switch_on(4096);
  for (unsigned round = 0; round < ROUNDS; round++) {
    void *block = NULL;
    size_t last = (size_t)1 << (6 + random_below(&random, 17));
    for (size_t size = 16; size < last; size += size / 2) {
      block = hak_realloc(block, size);
      REQUIRE(block && hak_malloc_usable_size(block) >= size);
      memset(block, 1, size);
    }
    hak_free(block);
  }
  REQUIRE(estimate_live(0).samples == 0);
  struct estimate made = estimate_sites(false), freed = estimate_sites(true);
  REQUIRE(made.blocks > 0 && made.blocks * 0.999999 < freed.blocks &&
          freed.blocks < made.blocks * 1.000001);
}

/* ---- exact counts ---------------------------------------------------------------------------- */

CHILD_TEST(count_all) {
  enum { CLASS_64 = 4, CLASS_4K = 28, CLASS_LARGE = SLAB_CLASS_COUNT + 1, COUNT = 5000 };
  for (unsigned index = 0; index < 100; index++) hak_free(must_malloc(64));
  switch_on(8192);
  hak_free(must_malloc(500)); /* a free is poked; a miss looks by itself */
  for (unsigned index = 0; index < COUNT; index++) {
    kept[index] = must_malloc(64);
    hak_free(must_malloc(4096));
    void *aligned = hak_aligned_alloc(64, 60);
    REQUIRE((uintptr_t)aligned % 64 == 0);
    hak_free(aligned);
    if (index % 10 == 0) hak_free(hak_calloc(1, class_bytes(CLASS_LARGE)));
    if (index % 100 == 0) hak_free(must_malloc(3 << 20));
  }
  REQUIRE(class_of_size(4096) == CLASS_4K);
  REQUIRE(profiled(CLASS_64) == 2 * COUNT && profiled(CLASS_4K) == COUNT);
  REQUIRE(profiled(CLASS_LARGE) == COUNT / 10);
  REQUIRE(counted(COUNT_profiled_big_blocks) == COUNT / 100);
  switch_off();
  for (unsigned index = 0; index < COUNT; index++) hak_free(kept[index]);
  for (unsigned index = 0; index < COUNT; index++) hak_free(must_malloc(64));
  REQUIRE(profiled(CLASS_64) == 2 * COUNT);
  REQUIRE(!heap_of_thread->sampler.countdown && !load_relaxed(&heap_of_thread->armed));
}

/* ---- blocks that are samples ----------------------------------------------------------------- */

/* With R = 64 nearly all are. */
CHILD_TEST(are_blocks) {
  switch_on(PERIOD);
  hak_free(must_malloc(100));
  for (size_t size = 1; size < 4 << 20; size += size / 3 + 1) {
    char *block = must_malloc(size);
    REQUIRE(hak_malloc_usable_size(block) >= size && hak_owns(block));
    memset(block, 0x5A, hak_malloc_usable_size(block));
    char *bigger = hak_realloc(block, size + size / 2);
    for (size_t at = 0; at < size; at += 17) REQUIRE(bigger[at] == 0x5A);
    char *zero = hak_calloc(1, size);
    for (size_t at = 0; at < size; at += 17) REQUIRE(!zero[at]);
    hak_free_sized(zero, size);
    hak_free(bigger);
  }
  REQUIRE(estimate_live(0).samples == 0);
}

static void free_twice(const void *size) {
  start_library();
  switch_on(PERIOD);
  hak_free(must_malloc(100));
  void *block = must_malloc(*(const size_t *)size);
  hak_free(block);
  hak_free(block);
}

TEST(double_free) {
  static const size_t sizes[] = {2000, 100000, 5 << 20};
  static const char *const said[] = {"hakmem: ", "0x", NULL};
  for (unsigned index = 0; index < 3; index++)
    assert_child_reports(free_twice, &sizes[index], said);
}

static void *take_and_leave(void *unused) {
  for (unsigned index = 0; index < 1000; index++) kept[index] = must_malloc(index + 1);
  return unused;
}

/* Threads that end leave samples that others free; a heap that nobody has is not armed. */
CHILD_TEST(threads_end) {
  switch_on(256);
  os_fake.is_multi_threaded = true;
  for (unsigned thread = 0; thread < 50; thread++) {
    on_a_thread(take_and_leave, NULL);
    for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
      if (load_relaxed(&owner->state) == OWNER_PARKED)
        REQUIRE(!load_relaxed(&heap_of_owner(owner)->armed));
    for (unsigned index = 0; index < 1000; index++) hak_free(kept[index]);
  }
  REQUIRE(estimate_live(0).samples == 0 && load_relaxed(&profile_state.samples) > 1000);
}

/* Hardened mode keeps samples in the table alone. */
BARE_TEST(hardened) {
  start_hardened(1);
  switch_on(256);
  hak_free(must_malloc(100));
  for (unsigned index = 0; index < KEPT; index++) kept[index] = must_malloc(index % 5000);
  struct estimate live = estimate_live(0);
  REQUIRE(live.samples > KEPT / 10);
  REQUIRE_NEAR(live.blocks, KEPT, 0.05);
  for (unsigned index = 0; index < KEPT; index++) hak_free(kept[index]);
  REQUIRE(estimate_live(0).samples == 0);
}

/* ---- the control record ---------------------------------------------------------------------- */

CHILD_TEST(obey_lease) {
  store_relaxed(&profile_control.lease_ms, os_now_coarse_ms() + 1000);
  switch_on(1024);
  hak_free(must_malloc(100));
  REQUIRE(heap_of_thread->sampler.countdown && profile_is_on());
  os_fake_advance_ms(1001);
  for (unsigned index = 0; index < KEPT; index++) hak_free(must_malloc(1000));
  REQUIRE(!heap_of_thread->sampler.countdown && !profile_is_on());
  REQUIRE(load_relaxed(&profile_state.ended_ms) >= load_relaxed(&profile_state.began_ms) + 1000);
}

CHILD_TEST(purge_once) {
  for (unsigned index = 0; index < KEPT; index++) kept[index] = must_malloc(1000);
  for (unsigned index = 0; index < KEPT; index++) hak_free(kept[index]);
  uint64_t before = look().purged_bytes;
  store_relaxed(&profile_control.purge_request, 7);
  publish();
  hak_free(must_malloc(100));
  REQUIRE(load_relaxed(&profile_state.purges_done) == 7 && look().purged_bytes > before);
}

BARE_TEST(refuse) {
  static char *environment[] = {"HAKMEM_PROFILE=never", NULL};
  os_fake.environment = environment;
  start_library();
  store_relaxed(&profile_control.purge_request, 7);
  switch_on(64);
  for (unsigned index = 0; index < KEPT; index++) hak_free(must_malloc(1000));
  REQUIRE(load_relaxed(&profile_state.status) == PROFILE_IS_REFUSED);
  REQUIRE(!load_relaxed(&profile_state.samples) && !load_relaxed(&profile_state.purges_done));
}

CHILD_TESTS(begin_at_once, char *, period, "HAKMEM_PROFILE=1", "HAKMEM_PROFILE=4K") {
  char *environment[] = {period, NULL};
  os_fake.environment = environment;
  for (unsigned index = 0; index < KEPT; index++) kept[index] = must_malloc(1000);
  bool adapts = strcmp(period, "HAKMEM_PROFILE=1") == 0; /* then there are few samples yet */
  REQUIRE_NEAR(estimate_live(0).blocks, KEPT, adapts ? 0.6 : 0.1);
  REQUIRE(look().class_counters[0][0] == 0 && profiled(class_of_size(1000)) == KEPT);
}

/* Any values: the process works, and what is drawn stays within bounds. */
CHILD_TEST(obey_anything) {
  uint64_t random = 99;
  for (unsigned round = 0; round < 2000; round++) {
    uint64_t shift = random_below(&random, 64);
    store_relaxed(&profile_control.period_bytes, random_next(&random) >> shift);
    store_relaxed(&profile_control.lease_ms, random_next(&random) >> shift);
    store_relaxed(&profile_control.samples_per_second, (uint32_t)random_next(&random));
    store_relaxed(&profile_control.flags, (uint8_t)random_next(&random));
    store_relaxed(&profile_control.stack_depth, (uint8_t)random_next(&random));
    store_relaxed(&profile_control.purge_request, (uint8_t)(random_next(&random) % 50));
    store_relaxed(&profile_control.word, random_next(&random));
    heap_of_thread->poke = HEAP_POKE;
    for (unsigned index = 0; index < 300; index++) {
      size_t at = random_below(&random, KEPT);
      hak_free(kept[at]);
      kept[at] = must_malloc(random_below(&random, 1 << random_below(&random, 18)));
    }
    REQUIRE(heap_of_thread->sampler.period_bytes <= PROFILE_PERIOD_MAX);
    os_fake_advance_ms(random_below(&random, 200));
  }
  for (unsigned index = 0; index < KEPT; index++) hak_free(kept[index]);
  REQUIRE(estimate_live(0).samples == 0);
}

/* Samples taken in so many seconds of 100 MB each. */
static double samples_in(unsigned seconds) {
  uint64_t before = load_relaxed(&profile_state.samples);
  for (unsigned step = 0; step < seconds * 100; step++) {
    for (unsigned index = 0; index < 1000; index++) hak_free(must_malloc(1000));
    os_fake_advance_ms(10);
    os_fake.processor_ms += 10;
  }
  return (double)(load_relaxed(&profile_state.samples) - before);
}

/* Towards the wanted rate, and what it may cost: a tool may ask for ten times as much, until the
 * program asks for itself. */
CHILD_TEST(adapt) {
  switch_on(0);
  hak_free(must_malloc(100));
  samples_in(4);
  REQUIRE_NEAR(samples_in(1), 1000, 0.3);
  store_relaxed(&profile_control.cost_percent, 5);
  samples_in(4);
  REQUIRE_NEAR(samples_in(1), 10000, 0.3);
  REQUIRE(profile_ask(true, 0));
  samples_in(4);
  REQUIRE_NEAR(samples_in(1), 1000, 0.3);
}
