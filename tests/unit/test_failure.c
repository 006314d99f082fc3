/* Every call to the operating system refused, one at a time and all from some call on.
 *
 * Each run is a process of its own, so that it begins with an untouched library: the calls that set it
 * up are refused like all others. */
#include "observe/snapshot.h"
#include "unit.h"
#include "workload.h"

enum { CALLS_MAX = 5000 };

static void require_nothing_is_left(void) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  REQUIRE(snapshot.big_live_bytes == 0);
  REQUIRE(snapshot.large_live_bytes == 0);
  REQUIRE(snapshot.slab_bytes_out == 0);
}

/* After the refusals: all of it works, and nothing was lost on the way. */
static void require_all_is_well(void) {
  struct workload load = {.must_succeed = true};
  os_fake_fail_none();
  workload_run(&load);
  require_nothing_is_left();
}

enum { EXIT_NOT_REFUSED = 3 };

struct refusal {
  uint64_t first, last; /* calls, counted from the process's first */
};

static int run_refusing(const void *argument) {
  const struct refusal *refusal = argument;
  struct workload load = {0};
  os_fake_fail(OS_CALLS_ALL, refusal->first, refusal->last);
  workload_run(&load);
  bool is_refused = load_relaxed(&os_fake.refused_calls) != 0;
  require_all_is_well();
  return is_refused ? 0 : EXIT_NOT_REFUSED;
}

/* True when the run was refused something and stood it; false when it did not come so far. */
static bool stands(uint64_t first, uint64_t last) {
  struct child child = child_run(run_refusing, &(struct refusal){first, last});
  int status = child_exit_status(&child);
  if (status != 0 && status != EXIT_NOT_REFUSED)
    fail_msg("calls from %u refused: %s", (unsigned)first, child.said);
  return status == 0;
}

static void test_one_call_refused(void **state) {
  (void)state;
  uint64_t call = 1;
  while (stands(call, call)) call++;
  assert_in_range(call, 20, CALLS_MAX); /* the workload does ask for things */
}

static void test_all_calls_refused_from_one_on(void **state) {
  (void)state;
  uint64_t call = 1;
  while (stands(call, UINT64_MAX)) call++;
  assert_in_range(call, 20, CALLS_MAX);
}

/* Refused at random, one call in four. */
static void test_some_calls_refused(void **state) {
  (void)state;
  for (uint64_t first = 1; first < 200; first += 13) stands(first, first + first % 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_call_refused),
      cmocka_unit_test(test_all_calls_refused_from_one_on),
      cmocka_unit_test(test_some_calls_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
