/* src/cache/magazine, capacity, refill and flush: a thread's caches, seen through its heap. */
#include "cache/magazine.h"

#include "cache/capacity.h"
#include "cache/heap.h"
#include "heap/thread.h"
#include "heaps.h"

BEFORE(child) { start_library(); }
enum { CLASS_64 = 4, CLASS_16K = 36, MANY = 4000, SLOTS_MAX = 2048 };

static void *blocks[MANY];

static struct magazine *magazine_of(unsigned class) { return &heap_of_thread->magazines[class]; }

static void take(size_t size, unsigned count) {
  for (unsigned index = 0; index < count; index++) blocks[index] = must_malloc(size);
}

static void give(unsigned count) {
  for (unsigned index = 0; index < count; index++) hak_free(blocks[index]);
}

static void require_laws(void) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    const struct magazine *magazine = magazine_of(class);
    REQUIRE(magazine_base(magazine) <= magazine->top && magazine->top <= magazine->end);
    REQUIRE(magazine_capacity(magazine) <= SLOTS_MAX);
    REQUIRE(!magazine_capacity(magazine) ||
            magazine_may_end_with(magazine_base(magazine), magazine_base(magazine)[-1]));
  }
}

CHILD_TEST(last_in_first_out) {
  take(64, 3);
  hak_free(blocks[0]);
  hak_free(blocks[2]);
  REQUIRE(hak_malloc(64) == blocks[2] && hak_malloc(64) == blocks[0]);
}

/* A load that swings by more than the magazine holds ends without misses. */
CHILD_TESTS(settle, unsigned, live, 10, 100, 1000) {
  start_library();
  for (unsigned round = 0; round < 40; round++) {
    take(64, live);
    give(live);
    require_laws();
  }
  struct snapshot before = look();
  for (unsigned round = 0; round < 20; round++) {
    take(64, live);
    give(live);
  }
  struct snapshot after = look();
  REQUIRE(after.counters[COUNT_refills] == before.counters[COUNT_refills]);
  REQUIRE(after.counters[COUNT_flushes] == before.counters[COUNT_flushes]);
}

/* Blocks in it would be lost. */
CHILD_TEST(shrink_what_is_empty) {
  take(64, 1000);
  give(1000);
  unsigned count = magazine_count(magazine_of(CLASS_64));
  capacity_shrink_all(heap_of_thread, 1);
  REQUIRE(count && magazine_count(magazine_of(CLASS_64)) == count);
  hak_purge(true);
  REQUIRE(look().slab_bytes_out == 0);
}

/* Growing once and shrinking once is no swing: the magazine stays small. */
CHILD_TEST(keep_small) {
  take(16384, 500);
  give(500);
  REQUIRE(magazine_capacity(magazine_of(CLASS_16K)) * (size_t)16384 <= 256 << 10);
  require_laws();
}

/* Nothing is lost on the way through batches: each block is live or in a magazine. */
CHILD_TEST(conserve) {
  uint64_t random = 42;
  unsigned live = 0;
  for (unsigned step = 0; step < 200000; step++) {
    if (live && (live == MANY || random_below(&random, 100) < 48 + step / 20000 % 2 * 4))
      hak_free(blocks[--live]);
    else
      blocks[live++] = must_malloc(64);
  }
  uint64_t cached = magazine_count(magazine_of(CLASS_64));
  REQUIRE(look().slab_bytes_out == (live + cached) * 64);
  give(live);
  hak_purge(true);
  REQUIRE(look().slab_bytes_out == 0 && magazine_count(magazine_of(CLASS_64)) == 0);
}

/* A refill takes what came back to several slabs, and nothing fresh with it. */
CHILD_TEST(gather_before_fresh) {
  enum { OF_TWO_SLABS = 2100, RETURNED = 10 };
  take(64, OF_TWO_SLABS);
  for (unsigned index = 0; index < RETURNED; index++) hak_free(blocks[index * 200]);
  hak_purge(true);
  const struct slab *last = slab_of_block((uintptr_t)blocks[OF_TWO_SLABS - 1]);
  REQUIRE(last != slab_of_block((uintptr_t)blocks[0]) && last->handed_out < last->capacity);
  unsigned handed_out = last->handed_out;
  uint64_t refills = counted(COUNT_refills);
  for (unsigned index = 0; index < RETURNED; index++) must_malloc(64);
  REQUIRE(last->handed_out == handed_out && counted(COUNT_refills) == refills + 1);
}

/* Idle blocks go back, and so do the slots. */
CHILD_TEST(shrink_when_idle) {
  for (unsigned round = 0; round < 40; round++) {
    take(64, 1000);
    give(1000);
  }
  unsigned grown = magazine_capacity(magazine_of(CLASS_64));
  REQUIRE(grown >= 500);
  for (unsigned look_again = 0; look_again < 40; look_again++) {
    os_fake_advance_ms(300);
    hak_free(must_malloc(2 << 20)); /* slow paths of the same thread */
  }
  REQUIRE(magazine_count(magazine_of(CLASS_64)) == 0);
  REQUIRE(magazine_capacity(magazine_of(CLASS_64)) < grown / 4);
  require_laws();
}

/* ---- flushes of blocks in no order ----------------------------------------------------------- */

enum { SCATTERED_BYTES = 2048, SCATTERED_STEP = 67 }; /* a slab has half as many */

static void give_scattered(unsigned count) {
  for (unsigned index = 0; index < count; index++) hak_free(blocks[index * SCATTERED_STEP % count]);
}

static void *make_scattered(void *count) {
  take(SCATTERED_BYTES, *(unsigned *)count);
  return NULL;
}

/* Every block of a flush has another slab than the one before; some are another heap's. */
CHILD_TEST(flush_scattered) {
  unsigned others = 1000;
  on_a_thread(make_scattered, &others);
  for (unsigned index = 0; index < others; index += 2) {
    hak_free(blocks[index]);
    blocks[index] = must_malloc(SCATTERED_BYTES);
  }
  give_scattered(others);
  hak_purge(true);
  REQUIRE(look().slab_bytes_out == 0);
  for (unsigned round = 0; round < 3; round++) {
    take(SCATTERED_BYTES, MANY);
    give_scattered(MANY);
    require_laws();
  }
  hak_purge(true);
  REQUIRE(look().slab_bytes_out == 0);
}

/* Runs of `run` neighbours, out of one half of the blocks and the other in turns. */
static void give_in_runs(unsigned count, unsigned run) {
  for (unsigned first = 0; first < count / 2; first += run) {
    for (unsigned at = first; at < first + run; at++) hak_free(blocks[at]);
    for (unsigned at = first; at < first + run; at++) hak_free(blocks[count / 2 + at]);
  }
}

/* Whether a group counts as scattered or not, all of it comes back. */
CHILD_TEST(flush_in_runs) {
  enum { RUN_MAX = 20 };
  for (unsigned run = 1; run <= RUN_MAX; run++) {
    unsigned count = MANY / 2 / run * run * 2; /* whole runs */
    take(SCATTERED_BYTES, count);
    give_in_runs(count, run);
    require_laws();
  }
  hak_purge(true);
  REQUIRE(look().slab_bytes_out == 0);
}

REPORT_TEST(double_free_scattered, "hakmem: double free of 0x",
            ": the block of 2048 bytes is free already") {
  take(SCATTERED_BYTES, MANY);
  void *twice = blocks[0];
  give_scattered(MANY / 2);
  hak_free(twice);
  give_scattered(MANY / 2); /* never comes to its end */
}

struct twice {
  unsigned step, first, later;
};
static void free_twice(const void *argument) {
  const struct twice *twice = argument;
  take(SCATTERED_BYTES, MANY);
  for (unsigned index = 0; index < MANY; index++) {
    hak_free(blocks[index * twice->step % MANY]);
    if (index == twice->first + twice->later) hak_free(blocks[twice->first * twice->step % MANY]);
  }
  hak_purge(true);
}

/* Wherever both are in magazine and flushes: of some the slab goes to the pool in between. */
TEST(double_free_later) {
  static const char *const said[] = {"hakmem: double free of 0x", "is free already", NULL};
  for (unsigned step = 1; step <= SCATTERED_STEP; step += SCATTERED_STEP - 1)
    for (unsigned later = 1; later < 200; later += 7)
      assert_child_reports(free_twice, &(struct twice){step, 3000, later}, said);
}

/* A program that only grows: batches become larger with what the class has, up to a bound. */
CHILD_TEST(grow_with_the_class) {
  take(64, 500);
  REQUIRE(magazine_capacity(magazine_of(CLASS_64)) == 128); /* two pages */
  for (unsigned megabyte = 0; megabyte < 4; megabyte++)
    for (unsigned index = 0; index < (1 << 20) / 64; index++) must_malloc(64);
  REQUIRE(magazine_capacity(magazine_of(CLASS_64)) == 256);
}

/* ---- other threads' blocks ------------------------------------------------------------------- */

static void *make_many_blocks(void *size) {
  REQUIRE(heap_of_this_thread()); /* its first calls would do without */
  take(*(size_t *)size, MANY);
  return NULL;
}

/* The first goes home, the others are its own to use. */
CHILD_TEST(keep_what_others_took) {
  size_t size = 64;
  on_a_thread(make_many_blocks, &size);
  for (unsigned index = 0; index < 3; index++) hak_free(blocks[index]);
  REQUIRE(counted(COUNT_remote_freed_blocks) == 1);
  REQUIRE(hak_malloc(size) == blocks[2] && hak_malloc(size) == blocks[1]);
}

/* In order, and with each block in another word than the one before: a flush sends neighbours home
 * in one step. */
CHILD_TESTS(send_home, unsigned, step, 1, 61) {
  size_t size = 512;
  start_library();
  on_a_thread(make_many_blocks, &size);
  for (unsigned first = 0; first < step; first++)
    for (unsigned index = first; index < MANY; index += step) hak_free(blocks[index]);
  hak_purge(true);
  REQUIRE(look().slab_bytes_out == 0 && counted(COUNT_remote_freed_blocks) == MANY);
}

enum { HELD = 1000, SWING = 200 };

static void *free_all_of_main(void *unused) {
  give(SWING);
  return unused;
}

static const struct owner *owner_of(const void *block) {
  return load_relaxed(&slab_of_block((uintptr_t)block)->owner);
}

static void *take_a_few(void *size) {
  REQUIRE(heap_of_this_thread());
  for (unsigned index = 0; index < SWING / 2; index++) blocks[index] = must_malloc(*(size_t *)size);
  return NULL;
}

/* The frees of an ended thread wait for the first thread, which sleeps. */
static uint64_t borrowed_by_a_thread(size_t size) {
  take(size, SWING);
  on_a_thread(free_all_of_main, NULL);
  on_a_thread(take_a_few, &size);
  return counted(COUNT_refill_borrowed);
}

CHILD_TEST(borrow_mid_blocks) {
  REQUIRE(borrowed_by_a_thread(4096) > 0);
  REQUIRE(owner_of(blocks[0]) == &heap_of_thread->owner);
}

CHILD_TEST(borrow_tiny_blocks) { REQUIRE(borrowed_by_a_thread(64) > 0); }

static void swing(void) {
  for (unsigned round = 0; round < 40; round++) {
    take(16384, SWING);
    give(SWING);
  }
}

static void *swing_with_blocks_of_main(void *unused) {
  give(SWING);
  swing();
  REQUIRE(magazine_capacity(magazine_of(CLASS_16K)) >= SWING);
  return unused;
}

/* Its share of what all hold counts, too: most is out of the first thread's slabs. */
CHILD_TEST(grow_with_what_others_own) {
  take(16384, HELD);
  on_a_thread(swing_with_blocks_of_main, NULL);
}

/* One swings, then the next, as in a pool of workers: each keeps little of what it alone held. */
static void *swing_in_turn(void *others) {
  unsigned left = *(unsigned *)others;
  swing();
  REQUIRE(left || magazine_capacity(magazine_of(CLASS_16K)) < SWING / 4);
  if (left--) on_a_thread(swing_in_turn, &left);
  return NULL;
}

CHILD_TEST(keep_little_in_turn) {
  unsigned others = 8;
  on_a_thread(swing_in_turn, &others);
}

/* The slab is given back to the pool between the two: it has no owner then. */
REPORT_TEST(double_free_around_a_release, "hakmem: double free of 0x",
            "(mid class 40, of thread ") {
  take(32 << 10, 64);
  void *twice = blocks[0];
  give(64);
  hak_free(twice);
  hak_purge(true);
}
