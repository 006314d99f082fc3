/* src/reclaim: what a slow path gives back, and what it leaves to the next, in the test's time. */
#include "reclaim/due.h"

#include "cache/heap.h"
#include "memory_use.h"
#include "purge/purge_credit.h"

/* Without the helper, which would do it in its own time. */
static void begin(void) {
  options.helper_thread = 0;
  start_library();
}

/* A program that goes on a little: slow paths, no memory to speak of. */
static void tick(uint64_t milliseconds) {
  os_fake_advance_ms(milliseconds);
  hak_free(must_malloc(2 * MIB));
}

/* One block in a hundred lives on, and with it nearly every slab. */
static void leave_survivors(void) {
  for (unsigned index = 0; index < SMALL_BLOCKS; index++) blocks[index] = must_malloc(200);
  for (unsigned index = 0; index < SMALL_BLOCKS; index++)
    if (index % 100) hak_free(blocks[index]);
}

static uint64_t given_page_bytes(void) { return load_relaxed(&totals.given_page_bytes); }
static uint64_t purged_bytes(void) { return look().purged_bytes; }
static uint64_t dirty_free_bytes(void) { return look().dirty_free_bytes; }

/* ---- by age --------------------------------------------------------------------------------- */

struct ticks {
  unsigned count, ms;
};
static void tick_often(struct ticks ticks) {
  while (ticks.count--) tick(ticks.ms);
}

struct course {
  const char *what;
  void (*use)(void);
  uint64_t (*given_bytes)(void);
  uint64_t decay_ms;
  struct ticks early; /* of memory that is too young … */
  size_t early_bytes; /* … no more than this is given back */
  unsigned silence_ms;
  struct ticks late; /* at least late_bytes are, and at most dirty_bytes are left */
  size_t late_bytes, dirty_bytes;
};
/* clang-format off */
static const struct course courses[] = {
    {"after the decay", use_memory, purged_bytes,
     1000, {9, 100}, 4 * MIB, 0, {30, 100}, 30 * MIB, 4 * MIB},
    {"by the first calls after a silence, each with a step of the work", use_memory, purged_bytes,
     1000, {2, 150}, 4 * MIB, 5000, {4, 0}, 20 * MIB, 6 * MIB},
    {"at once", use_memory, purged_bytes,
     0, {0, 0}, 0, 10, {5, 0}, 20 * MIB, 4 * MIB},
    {"pages between survivors", leave_survivors, given_page_bytes,
     1000, {9, 100}, 0, 0, {10, 100}, 6 * MIB, SIZE_MAX},
    {"pages a little later, as a busy program wants them again", leave_survivors, given_page_bytes,
     0, {9, 10}, 0, 0, {20, 10}, 6 * MIB, SIZE_MAX},
};
/* clang-format on */

static void take_course(const void *argument) {
  const struct course *course = argument;
  fprintf(stderr, "%s\n", course->what);
  begin();
  options.decay_ms = course->decay_ms;
  course->use();
  uint64_t before = course->given_bytes();
  tick_often(course->early);
  REQUIRE(course->given_bytes() - before <= course->early_bytes);
  os_fake_advance_ms(course->silence_ms);
  tick_often(course->late);
  REQUIRE(course->given_bytes() - before >= course->late_bytes);
  REQUIRE(dirty_free_bytes() <= course->dirty_bytes);
}

TEST(give_by_age) {
  for (size_t at = 0; at < sizeof courses / sizeof *courses; at++)
    assert_child_succeeds(take_course, &courses[at]);
}

CHILD_TEST(earn_credit_and_spend_it) {
  begin();
  use_memory();
  os_fake.processor_ms = 900;
  tick_often((struct ticks){9, 100});
  int64_t earned = purge_credit(); /* 56 MiB */
  tick_often((struct ticks){30, 100});
  REQUIRE(purge_credit() <= earned - (int64_t)(30 * MIB));
}

/* No round while there is nothing to give back: a program that only runs pays nothing. */
CHILD_TEST(stay_quiet) {
  begin();
  hak_purge(true);
  void *block = must_malloc(100);
  tick_often((struct ticks){20, 1000});
  for (unsigned step = 0; step < 5; step++) hak_purge(true);
  uint64_t purges = counted(COUNT_purges);
  for (unsigned step = 0; step < 100; step++) {
    os_fake_advance_ms(1000);
    void *wanted[40];
    for (unsigned index = 0; index < 40; index++) wanted[index] = must_malloc(500);
    for (unsigned index = 0; index < 40; index++) hak_free(wanted[index]);
  }
  REQUIRE(counted(COUNT_purges) - purges <= 100);
  hak_free(block);
}

CHILD_TEST(bound_what_is_kept) {
  begin();
  options.big_cache_bytes = 16 * MIB;
  for (unsigned index = 0; index < 40; index++) blocks[index] = must_malloc(2 * MIB);
  for (unsigned index = 0; index < 40; index++) hak_free(blocks[index]);
  REQUIRE(dirty_free_bytes() <= 20 * MIB); /* whatever its age */
}

/* ---- by force ------------------------------------------------------------------------------- */

CHILD_TEST(purge_by_force) {
  begin();
  use_memory();
  REQUIRE(hak_purge(false) < MIB); /* nothing is old */
  REQUIRE(hak_purge(true) >= 20 * MIB);
  struct snapshot snapshot = look();
  REQUIRE(snapshot.dirty_free_bytes == 0 && snapshot.slab_bytes_out == 0);
  REQUIRE(hak_purge(true) == 0);
}

CHILD_TEST(give_pages_by_force) {
  begin();
  leave_survivors();
  REQUIRE(hak_purge(true) >= 6 * MIB && given_page_bytes() >= 6 * MIB);
  REQUIRE(hak_purge(true) == 0);
}

/* ---- one step, however much is due at once and however slow the system is -------------------- */

/* PAGE_CALLS_A_SCAN; of the last SuperSlab all runs of free slots go. */
enum { CALLS_A_STEP = 128, RUNS_OF_A_SUPERSLAB = 16, ROUNDS = 400, STEP_MIB = 4 };
enum { SLOW_NS_A_PAGE = 400, LONGEST_NS = 1000000 };

struct kind {
  size_t bytes;
  unsigned count;
};
static const struct kind kinds[] = {
    {200, 30000}, {5000, 6000}, {20000, 2000}, {40 << 10, 2000}, {300 << 10, 200}};

static uint64_t most_calls, most_ns;

/* What one call of the library has asked of the system, and how long the system took. */
static void note(uint64_t calls, uint64_t ns) {
  calls = load_relaxed(&os_fake.calls[OS_CALL_PURGE]) - calls;
  ns = os_now_ns() - ns;
  if (calls > most_calls) most_calls = calls;
  if (ns > most_ns) most_ns = ns;
}

static void *timed_malloc(size_t size) {
  uint64_t calls = load_relaxed(&os_fake.calls[OS_CALL_PURGE]), ns = os_now_ns();
  void *block = must_malloc(size);
  note(calls, ns);
  return block;
}

static void timed_free(void *block) {
  uint64_t calls = load_relaxed(&os_fake.calls[OS_CALL_PURGE]), ns = os_now_ns();
  hak_free(block);
  note(calls, ns);
}

/* One block in eight lives on, so that slabs have free pages, and free ranges are small: one goes
 * as a whole. */
static void leave_one_in_eight(const struct kind *kind) {
  for (unsigned index = 0; index < kind->count; index++) blocks[index] = must_malloc(kind->bytes);
  for (unsigned index = 0; index < kind->count; index++)
    if (index % 8) hak_free(blocks[index]);
}

static void require_steps(unsigned steps) {
  REQUIRE(most_calls <= steps * CALLS_A_STEP + RUNS_OF_A_SUPERSLAB);
  REQUIRE(most_ns <= steps * (uint64_t)LONGEST_NS);
}

CHILD_TESTS(one_step, bool, is_multi_threaded, false, true) {
  os_fake.is_multi_threaded = is_multi_threaded;
  begin();
  options.big_cache_bytes = 1024 * MIB; /* nothing goes before its time */
  for (unsigned kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
    leave_one_in_eight(&kinds[kind]);
  hak_free(timed_malloc(2 * MIB)); /* the next round is armed */
  most_calls = most_ns = 0;
  uint64_t before = purged_bytes();
  os_fake.purge_ns_a_page = SLOW_NS_A_PAGE;
  options.big_cache_bytes = 16 * MIB; /* and now all is too much, and old, and free pages wait */
  for (unsigned round = 0; round < ROUNDS; round++) {
    os_fake_advance_ms(round % 8 ? 10 : 1500);
    timed_free(timed_malloc(2 * MIB));
    timed_free(timed_malloc(100 + round % 8 * 5000));
  }
  require_steps(1);
  REQUIRE(purged_bytes() - before >= 150 * MIB && dirty_free_bytes() <= 20 * MIB);
}

/* One free block that is far larger than a step, and ranges that the process grows by while others
 * are free. A program with one thread that frees its only block gives all of it back, as it may
 * sleep from then on. */
CHILD_TESTS(part, bool, is_multi_threaded, false, true) {
  os_fake.is_multi_threaded = is_multi_threaded;
  begin();
  os_fake.purge_ns_a_page = SLOW_NS_A_PAGE;
  os_fake.processor_ms = 100000; /* it may offset its growth */
  most_calls = most_ns = 0;
  timed_free(timed_malloc(1024 * MIB));
  REQUIRE(is_multi_threaded || dirty_free_bytes() <= 64 * MIB);
  for (unsigned round = 0; round < 2 * ROUNDS; round++) {
    os_fake_advance_ms(100);
    timed_free(timed_malloc(2 * MIB));
    if (round % 256 == 0 && round < ROUNDS) timed_free(timed_malloc((1100 + round) * MIB));
  }
  require_steps(is_multi_threaded ? 1 : (1100 + ROUNDS) / STEP_MIB);
  REQUIRE(dirty_free_bytes() <= 300 * MIB);
}

/* ---- the rest of the work comes with the next slow paths, whatever else is in the way -------- */

enum {
  CLASS_64 = 4,
  FREE_SLABS = 700,
  USED_SLABS = 600,
  BIG_BLOCKS = 20,
  STEPS = 100,
  STEP_MS = 300
};

static void *slab_blocks[FREE_SLABS + USED_SLABS][GRANULE_BYTES / 64];

static const struct bin *bin(void) { return &heap_of_thread->owner.bins[CLASS_64]; }

static void *free_them(void *argument) {
  (void)argument;
  const unsigned slabs = FREE_SLABS + USED_SLABS, capacity = slab_shapes[CLASS_64].capacity;
  for (unsigned slab = 0; slab < slabs; slab++)
    for (unsigned block = 0; block < (slab < FREE_SLABS ? capacity : 1); block++)
      hak_free(slab_blocks[slab][block]);
  return NULL;
}

/* A slow path of a thread that frees nothing. */
static void come_by(void) {
  os_fake_advance_ms(STEP_MS);
  must_malloc(3 * MIB);
}

/* Another thread has freed blocks in more slabs than one slow path visits, and those that it queued
 * last are in use. */
CHILD_TEST(drain_behind_many) {
  os_fake.is_multi_threaded = true;
  begin();
  const unsigned slabs = FREE_SLABS + USED_SLABS, capacity = slab_shapes[CLASS_64].capacity;
  for (unsigned slab = 0; slab < slabs; slab++)
    for (unsigned block = 0; block < capacity; block++) slab_blocks[slab][block] = must_malloc(64);
  come_by();
  on_a_thread(free_them, NULL);
  for (unsigned step = 0; step < STEPS; step++) come_by();
  REQUIRE(load_relaxed(&bin()->slab_count) < USED_SLABS + 100);
  REQUIRE(!(load_relaxed(&heap_of_thread->owner.ready_mask) >> CLASS_64 & 1));
}

/* More is free than may be, and the system takes none of it: rounds come all the same. */
CHILD_TEST(go_round_beside_locked_memory) {
  begin();
  options.big_cache_bytes = 16 * MIB;
  os_fake_fail(1u << OS_CALL_PURGE, 1, UINT64_MAX);
  for (unsigned index = 0; index < BIG_BLOCKS; index++) blocks[index] = must_malloc(3 * MIB);
  for (unsigned index = 0; index < BIG_BLOCKS; index++) hak_free(blocks[index]);
  uint64_t before = counted(COUNT_purges);
  for (unsigned step = 0; step < STEPS; step++) {
    os_fake_advance_ms(STEP_MS);
    hak_free(must_malloc(2 * MIB));
  }
  REQUIRE(dirty_free_bytes() > 16 * MIB);
  REQUIRE(counted(COUNT_purges) - before >= STEPS / 2);
}
