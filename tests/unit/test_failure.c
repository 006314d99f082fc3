/* Every call to the operating system refused, one at a time and all from some call on.
 *
 * Each run is a process of its own, so that it begins with an untouched library: the calls that set it
 * up are refused like all others. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void run_refusing(uint64_t first, uint64_t last) {
  struct workload load = {0};
  os_fake_fail(OS_CALLS_ALL, first, last);
  workload_run(&load);
  bool is_refused = load_relaxed(&os_fake.refused_calls) != 0;
  require_all_is_well();
  _exit(is_refused ? 0 : EXIT_NOT_REFUSED);
}

/* True when the run was refused something and stood it; false when it did not come so far. */
static bool stands(uint64_t first, uint64_t last) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL); /* not cmocka's business */
    signal(SIGSEGV, SIG_DFL);
    run_refusing(first, last);
  }
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != EXIT_NOT_REFUSED))
    fail_msg("calls %llu to %llu refused: status %#x", (unsigned long long)first,
             (unsigned long long)last, (unsigned)status);
  return WEXITSTATUS(status) == 0;
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
