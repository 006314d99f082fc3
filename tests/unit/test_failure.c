/* Every call to the operating system refused: one at a time, all from some call on, one kind of them,
 * and at random.
 *
 * Each run is a process of its own, so that it begins with an untouched library: the calls that set it
 * up are refused like all others. */
#include <sys/mman.h>

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

/* What the children were refused, by kind. */
static struct tally { ATOMIC(uint64_t) runs, refused[OS_CALL_COUNT]; } * tally;

static int run_refused(void) {
  struct workload load = {0};
  workload_run(&load);
  for (unsigned kind = 0; kind < OS_CALL_COUNT; kind++)
    fetch_add_relaxed(&tally->refused[kind], load_relaxed(&os_fake.refused[kind]));
  fetch_add_relaxed(&tally->runs, 1);
  bool is_refused = load_relaxed(&os_fake.refused_calls) != 0;
  require_all_is_well();
  return is_refused ? 0 : EXIT_NOT_REFUSED;
}

struct refusal {
  uint64_t first, last; /* calls, counted from the process's first */
};

static int run_refusing(const void *argument) {
  const struct refusal *refusal = argument;
  os_fake_fail(OS_CALLS_ALL, refusal->first, refusal->last);
  return run_refused();
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

static void test_some_calls_refused(void **state) {
  (void)state;
  for (uint64_t first = 1; first < 200; first += 13) stands(first, first + first % 7);
}

/* ---- at random ------------------------------------------------------------------------------------- */

enum { RANDOM_RUNS = 60 };

static int run_refusing_at_random(const void *argument) {
  const uint64_t *seed = argument;
  os_fake_fail_at_random(OS_CALLS_ALL, 2 + *seed % 12, *seed);
  return run_refused();
}

static void test_calls_refused_at_random(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= RANDOM_RUNS; seed++) {
    struct child child = child_run(run_refusing_at_random, &seed);
    int status = child_exit_status(&child);
    if (status != 0) fail_msg("seed %u: exit %d: %s", (unsigned)seed, status, child.said);
  }
}

/* One kind of call refused all the time, the others not. */
static int run_refusing_kind(const void *argument) {
  const uint32_t *kind = argument;
  static char guard[] = "HAKMEM_GUARD=1", rate[] = "HAKMEM_GUARD_RATE=1";
  static char *guarded[] = {guard, rate, NULL};
  if (*kind == OS_CALL_OPEN_PAGES || *kind == OS_CALL_CLOSE_PAGES) os_fake.environment = guarded;
  os_fake_fail(1u << *kind, 1, UINT64_MAX);
  os_fake.is_overcommit_strict = *kind == OS_CALL_UNMAP; /* else it is asked only under pressure */
  return run_refused();
}

static void test_one_kind_refused(void **state) {
  (void)state;
  for (uint32_t kind = 0; kind < OS_CALL_COUNT; kind++) {
    struct child child = child_run(run_refusing_kind, &kind);
    if (child_exit_status(&child) != 0) fail_msg("kind %u: %s", kind, child.said);
  }
}

/* Last: every kind of call was refused somewhere, and how often all in all. */
static void test_every_kind_was_refused(void **state) {
  (void)state;
  for (unsigned kind = 0; kind < OS_CALL_COUNT; kind++)
    if (!load_relaxed(&tally->refused[kind])) fail_msg("no call of kind %u was refused", kind);
  printf("tally: %llu faults\n", (unsigned long long)load_relaxed(&tally->runs));
}

int main(void) {
  tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (tally == MAP_FAILED) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_call_refused),
      cmocka_unit_test(test_all_calls_refused_from_one_on),
      cmocka_unit_test(test_some_calls_refused),
      cmocka_unit_test(test_calls_refused_at_random),
      cmocka_unit_test(test_one_kind_refused),
      cmocka_unit_test(test_every_kind_was_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
