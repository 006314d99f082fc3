/* src/reclaim/helper: when the helper thread begins, what it does, when it ends. */
#include "reclaim/helper.h"

#include "memory_use.h"
#include "purge/purge.h"

BEFORE(child) { start_library(); }

static uint64_t starts(void) { return load_relaxed(&os_fake.calls[OS_CALL_THREAD_START]); }

CHILD_TEST(let_the_helper_do_it) {
  options.helper_thread = 1;
  helper_start_when_worth();
  helper_start_when_worth(); /* one only */
  REQUIRE(starts() == 1);
  use_memory();
  uint64_t purged = look().purged_bytes;
  for (unsigned step = 0; step < 2000 && look().purged_bytes - purged < 20 * MIB; step++) {
    os_fake_advance_ms(50);
    os_sleep_ms(1);
  }
  REQUIRE(look().purged_bytes - purged >= 20 * MIB);
}

/* By itself only in a program that has threads and has used memory; in a forked child a little
 * later. */
BARE_TEST(start_when_worth) {
  os_fake.is_multi_threaded = false;
  start_library();
  options.helper_thread = 2;
  use_memory();
  REQUIRE(starts() == 0);
  os_fake.is_multi_threaded = true;
  helper_after_fork(1);
  must_malloc(100000);
  REQUIRE(starts() == 0);
  os_fake_advance_ms(options.decay_ms + 1);
  hak_free(must_malloc(3 << 20));
  hak_free(must_malloc(3 << 20));
  REQUIRE(starts() == 1);
}

CHILD_TEST(start_for_little) {
  options.helper_thread = 2;
  for (unsigned index = 0; index < 1000; index++) must_malloc(index);
  REQUIRE(starts() == 0);
}

CHILD_TEST(start_without_threads) {
  options.helper_thread = 1;
  os_fake_fail(1u << OS_CALL_THREAD_START, 1, UINT64_MAX);
  helper_start_when_worth();
  REQUIRE(
      strstr(os_fake.written, "hakmem: warning: HAKMEM_HELPER_THREAD=1: no thread can be started"));
  use_memory();
  hak_purge(true);
}

/* One that was refused is not asked for again; a forked child asks once more. */
CHILD_TEST(refused_once) {
  options.helper_thread = 1;
  os_fake_fail(1u << OS_CALL_THREAD_START, 1, 1);
  helper_start_when_worth();
  helper_start_when_worth();
  REQUIRE(starts() == 1);
  REQUIRE(!helper_stop(false));
  helper_after_fork(1);
  helper_start_when_worth();
  REQUIRE(starts() == 2);
}

/* Nothing to give back, and one thread: it leaves, and comes again when it is wanted. */
CHILD_TEST(leave_when_alone) {
  options.helper_thread = 2;
  hak_free(must_malloc(100));
  helper_note_thread(); /* a second one */
  use_memory();
  hak_free(must_malloc(20 * MIB));
  hak_free(must_malloc(20 * MIB));
  REQUIRE(starts() == 1);
  hak_purge(true);
  for (unsigned step = 0; step < 2000 && load_relaxed(&purge_state) != PURGE_NONE; step++) {
    os_fake_advance_ms(300);
    os_sleep_ms(1);
  }
  helper_note_thread_end();
  for (unsigned step = 0; step < 500; step++)
    os_sleep_ms(1); /* until it has left, on a busy machine too */
  use_memory();
  hak_free(must_malloc(20 * MIB));
  REQUIRE(starts() == 2);
}

/* Told to end it does, and for good when it is said so. */
CHILD_TEST(stop_the_helper) {
  options.helper_thread = 1;
  helper_start_when_worth();
  REQUIRE(helper_stop(false));
  helper_start_when_worth();
  REQUIRE(starts() == 2 && helper_stop(true));
  helper_start_when_worth();
  REQUIRE(starts() == 2 && !helper_stop(true));
}
