/* src/reclaim: memory goes back by age, in the test's time. */
#include "reclaim/due.h"

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

CHILD_TEST(wait_for_the_decay) {
  begin();
  use_memory();
  uint64_t before = look().purged_bytes, free_bytes = look().dirty_free_bytes;
  REQUIRE(free_bytes >= 20 * MIB);
  os_fake.processor_ms = 900;
  for (unsigned step = 0; step < 9; step++) tick(100);
  int64_t earned = purge_credit();                 /* 56 MiB */
  REQUIRE(look().purged_bytes - before < 4 * MIB); /* too young, all of it */
  for (unsigned step = 0; step < 30; step++) tick(100);
  REQUIRE(look().purged_bytes - before >= 30 * MIB);
  REQUIRE(look().dirty_free_bytes < 4 * MIB);
  REQUIRE(purge_credit() <= earned - (int64_t)(30 * MIB)); /* and spends it */
}

/* The first calls after a long silence are enough, each with a step of the work. */
CHILD_TEST(notice_a_silence) {
  begin();
  use_memory();
  tick(10);
  tick(300);
  os_fake_advance_ms(5000);
  for (unsigned step = 0; step < 4; step++) hak_free(must_malloc(2 * MIB));
  REQUIRE(look().dirty_free_bytes < 6 * MIB);
}

CHILD_TEST(decay_at_once) {
  begin();
  options.decay_ms = 0;
  use_memory();
  tick(10);
  for (unsigned step = 0; step < 4; step++) tick(0);
  REQUIRE(look().dirty_free_bytes <= 4 * MIB);
}

CHILD_TEST(purge_by_force) {
  begin();
  use_memory();
  REQUIRE(hak_purge(false) < MIB); /* nothing is old */
  REQUIRE(hak_purge(true) >= 20 * MIB);
  struct snapshot snapshot = look();
  REQUIRE(snapshot.dirty_free_bytes == 0 && snapshot.slab_bytes_out == 0);
  REQUIRE(hak_purge(true) == 0);
}

/* One block in a hundred lives on, and with it nearly every slab. */
static void leave_survivors(void) {
  for (unsigned index = 0; index < SMALL_BLOCKS; index++) blocks[index] = must_malloc(200);
  for (unsigned index = 0; index < SMALL_BLOCKS; index++)
    if (index % 100) hak_free(blocks[index]);
}

static uint64_t given_pages_bytes(void) { return load_relaxed(&totals.given_page_bytes); }

CHILD_TEST(give_pages_between_survivors) {
  begin();
  leave_survivors();
  for (unsigned step = 0; step < 9; step++) tick(100);
  REQUIRE(given_pages_bytes() == 0);
  for (unsigned step = 0; step < 10; step++) tick(100);
  REQUIRE(given_pages_bytes() >= 6 * MIB);
  for (unsigned index = 0; index < SMALL_BLOCKS; index += 100) hak_free(blocks[index]);
}

/* Though nothing else waits, as a busy program wants them again. */
CHILD_TEST(keep_pages_a_little) {
  begin();
  options.decay_ms = 0;
  leave_survivors();
  for (unsigned step = 0; step < 9; step++) tick(10);
  REQUIRE(given_pages_bytes() == 0);
  for (unsigned step = 0; step < 20; step++) tick(10);
  REQUIRE(given_pages_bytes() >= 6 * MIB);
}

CHILD_TEST(give_pages_by_force) {
  begin();
  leave_survivors();
  REQUIRE(hak_purge(true) >= 6 * MIB && given_pages_bytes() >= 6 * MIB);
  REQUIRE(hak_purge(true) == 0);
}

/* No round while there is nothing to give back: a program that only runs pays nothing. */
CHILD_TEST(stay_quiet) {
  begin();
  hak_purge(true);
  void *block = must_malloc(100);
  for (unsigned step = 0; step < 20; step++) tick(1000);
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
  REQUIRE(look().dirty_free_bytes <= 20 * MIB); /* whatever its age */
}
