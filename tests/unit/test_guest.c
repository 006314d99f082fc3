/* A thread of another process in this memory (os_is_guest) takes nothing on that others then do not
 * do, as it may end at any instruction. */
#include "profiles.h"
#include "purge/purge.h"
#include "ranges/range_magazine.h"
#include "reclaim/due.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"

#include "memory_use.h"

static uint64_t starts(void) { return load_relaxed(&os_fake.calls[OS_CALL_THREAD_START]); }
static uint64_t purges(void) { return counted(COUNT_purges); }

/* The helper would end with the guest's process, or keep that from ending. */
CHILD_TEST(start_no_helper) {
  start_library();
  options.helper_thread = 1;
  os_fake.is_guest = true;
  helper_start_when_worth();
  REQUIRE(starts() == 0);
  os_fake.is_guest = false;
  helper_start_when_worth();
  REQUIRE(starts() == 1);
}

CHILD_TEST(end_no_helper) {
  start_library();
  options.helper_thread = 1;
  helper_start_when_worth();
  os_fake.is_guest = true;
  REQUIRE(!helper_stop(true));
  os_fake.is_guest = false;
  helper_start_when_worth();
  REQUIRE(starts() == 1 && helper_stop(false));
}

static void begin_without_helper(void) {
  options.helper_thread = 0;
  start_library();
}

static void tick(uint64_t milliseconds) {
  os_fake_advance_ms(milliseconds);
  hak_free(must_malloc(2 * MIB));
}

/* Rounds by age: the next is due as if the guest had not looked. */
CHILD_TEST(leave_rounds) {
  begin_without_helper();
  use_memory();
  tick(10);
  uint64_t before = purges(), due_ms = load_relaxed(&reclaim_next_round_ms);
  os_fake.is_guest = true;
  for (unsigned step = 0; step < 20; step++) tick(100);
  REQUIRE(purges() == before && load_relaxed(&reclaim_next_round_ms) == due_ms);
  REQUIRE(load_relaxed(&purge_state) != PURGE_NONE);
  os_fake.is_guest = false;
  for (unsigned step = 0; step < 8; step++) tick(100);
  REQUIRE(purges() > before && look().dirty_free_bytes < 6 * MIB);
}

CHILD_TEST(leave_every_reason) {
  begin_without_helper();
  use_memory();
  uint64_t before = purges();
  os_fake.is_guest = true;
  for (enum reclaim_reason reason = 0; reason < RECLAIM_REASONS; reason++) {
    struct purge purge = reclaim(heap_of_thread, reason);
    REQUIRE(purge.work_remains && !purge.purged_bytes && !purge.is_cut);
  }
  REQUIRE(purges() == before && hak_purge(true) == 0 && hak_purge(false) == 0);
  os_fake.is_guest = false;
  REQUIRE(hak_purge(true) >= 20 * MIB);
}

/* With one thread there are no turns that could be left taken. */
CHILD_TEST(run_them_alone) {
  os_fake.is_multi_threaded = false;
  begin_without_helper();
  must_malloc(200 * MIB); /* what is small beside the live bytes stays */
  use_memory();
  os_fake.is_guest = true;
  REQUIRE(hak_purge(true) >= 20 * MIB);
}

/* Above the soft limit, and where memory is refused: served without a round, or not at all. */
CHILD_TEST(leave_limits) {
  begin_without_helper();
  use_memory();
  uint64_t before = purges();
  store_relaxed(&limits.soft_bytes, MIB);
  os_fake.is_guest = true;
  for (unsigned step = 0; step < 20; step++) tick(100);
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, UINT64_MAX);
  REQUIRE(!hak_malloc(512 * MIB) && purges() == before);
}

/* The cgroup may be the guest's. */
CHILD_TEST(read_no_limits) {
  begin_without_helper();
  os_fake.is_guest = true;
  use_memory();
  REQUIRE(!reclaim_is_small());
  uint64_t before = load_relaxed(&os_fake.files_read);
  reclaim_poll_limits_once();
  REQUIRE(load_relaxed(&os_fake.files_read) == before);
  os_fake.is_guest = false;
  reclaim_poll_limits_once();
  REQUIRE(load_relaxed(&os_fake.files_read) > before);
}

/* The tool waits until what it has asked for is done. */
CHILD_TEST(leave_a_request) {
  begin_without_helper();
  use_memory();
  store_relaxed(&profile_control.purge_request, 7);
  publish();
  os_fake.is_guest = true;
  for (unsigned step = 0; step < 3; step++) hak_free(must_malloc(100));
  REQUIRE(!load_relaxed(&profile_state.purges_begun));
  os_fake.is_guest = false;
  hak_free(must_malloc(100));
  REQUIRE(load_relaxed(&profile_state.purges_done) == 7);
}

/* Other threads' magazines would stay closed; and what the guest's filter refuses the process may
 * do. */
CHILD_TEST(leave_the_magazines_of_others) {
  start_library();
  struct range_magazines *own = range_magazines_make();
  struct counters counters = {0};
  hak_free(must_malloc(100000)); /* lies in the magazines of the thread's heap */
  uint64_t held = range_magazines_bytes();
  os_fake.is_guest = true;
  range_magazines_merge(own, 4 * MIB, &counters);
  REQUIRE(held && range_magazines_bytes() == held);
  os_fake.is_confined = true;
  range_magazines_share();
  REQUIRE(load_relaxed(&biased_have_barrier));
}
