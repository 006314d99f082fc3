/* Every call to the operating system refused: one at a time, all from some call on, one kind of
 * them, and at random; each time so that nothing of it was done, and so that half of it was.
 *
 * Each run is a process of its own, so that it begins with an untouched library: the calls that set
 * it up are refused like all others. */
#include <sys/mman.h>

#include "observe/snapshot.h"
#include "unit.h"
#include "workload.h"

enum { CALLS_MAX = 5000, LOOKS = 500 };

static bool is_nothing_left(void) {
  struct snapshot snapshot;
  hak_purge(true);
  snapshot_take(&snapshot);
  return !snapshot.big_live_bytes && !snapshot.large_live_bytes && !snapshot.slab_bytes_out;
}

/* The helper thread may be in the middle of a round, with slabs in its hands. */
static void require_nothing_is_left(void) {
  unsigned look = 0;
  while (!is_nothing_left() && look < LOOKS) {
    usleep(1000);
    look++;
  }
  REQUIRE(look < LOOKS);
}

/* After the refusals: all of it works, and nothing was lost on the way. */
static void require_all_is_well(void) {
  struct workload load = {.must_succeed = true};
  os_fake_fail_none();
  workload_run(&load);
  require_nothing_is_left();
}

enum { EXIT_NOT_REFUSED = 3 };

/* The options of the library: the defaults, hardened, with sampled guards. */
enum mode { MODE_DEFAULT, MODE_HARDENED, MODE_GUARDED, MODE_COUNT };

static void choose_mode(enum mode mode) {
  static char harden[] = "HAKMEM_HARDEN=2", guard[] = "HAKMEM_GUARD=1";
  static char rate[] = "HAKMEM_GUARD_RATE=3";
  static char *environments[MODE_COUNT][4] = {
      [MODE_HARDENED] = {harden}, [MODE_GUARDED] = {guard, rate}};
  os_fake.environment = environments[mode];
}

/* The refusals of all children, by kind. */
static struct tally { ATOMIC(uint64_t) runs, refused[OS_CALL_COUNT]; } * tally;

BEFORE(all) {
  tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(tally, MAP_FAILED);
}

static int run_refused(void) {
  struct workload load = {0};
  workload_run(&load);
  hak_free(hak_malloc((size_t)3 << 30)); /* beyond the first entries of the window's maps */
  for (unsigned kind = 0; kind < OS_CALL_COUNT; kind++)
    fetch_add_relaxed(&tally->refused[kind], load_relaxed(&os_fake.refused[kind]));
  fetch_add_relaxed(&tally->runs, 1);
  bool is_refused = load_relaxed(&os_fake.refused_calls) != 0;
  require_all_is_well();
  return is_refused ? 0 : EXIT_NOT_REFUSED;
}

struct refusal {
  uint64_t first, last; /* calls, counted from the process's first */
  enum mode mode;
  bool does_half;
};

static void run_refusing(const void *argument) {
  const struct refusal *refusal = argument;
  choose_mode(refusal->mode);
  os_fake.does_half = refusal->does_half;
  os_fake_fail(OS_CALLS_ALL, refusal->first, refusal->last);
  _exit(run_refused());
}

/* True when the run was refused something and stood it; false when it did not come so far. */
static bool stands_one(const struct refusal *refusal) {
  struct child child = child_run(run_refusing, refusal);
  int status = child_exit_status(&child);
  if (status != 0 && status != EXIT_NOT_REFUSED)
    fail_msg("mode %u, calls from %u refused, half done %d: %s", refusal->mode,
             (unsigned)refusal->first, refusal->does_half, child.said);
  return status == 0;
}

/* With ALL=1 each refusal both ways, else in turns. */
static bool stands(enum mode mode, uint64_t first, uint64_t last) {
  if (!getenv("ALL")) return stands_one(&(struct refusal){first, last, mode, first % 2});
  bool all = stands_one(&(struct refusal){first, last, mode, false});
  return stands_one(&(struct refusal){first, last, mode, true}) && all;
}

TEST(one_call_refused) {
  for (enum mode mode = 0; mode < MODE_COUNT; mode++) {
    uint64_t call = 1;
    while (stands(mode, call, call)) call += mode == MODE_DEFAULT ? 1 : 1 + call / 8;
    /* The workload does ask for things; of the other modes' hundreds some are enough. */
    assert_true(call >= 20 && call <= CALLS_MAX);
  }
}

TEST(all_calls_refused_from_one_on) {
  uint64_t call = 1;
  /* Two neighbours differ in one call, which one_call_refused has; 3 is odd: both ways come in
   * turns. */
  while (stands(MODE_DEFAULT, call, UINT64_MAX)) call += getenv("ALL") ? 1 : 3;
  assert_true(call >= 20 && call <= CALLS_MAX);
}

TEST(some_calls_refused) {
  for (uint64_t first = 1; first < 200; first += 13)
    stands(first % MODE_COUNT, first, first + first % 7);
}

/* ---- at random ------------------------------------------------------------------------------- */

enum { RANDOM_RUNS = 60 };

static void run_refusing_at_random(const void *argument) {
  const uint64_t *seed = argument;
  choose_mode(*seed % MODE_COUNT);
  os_fake.does_half = *seed / MODE_COUNT % 2;
  os_fake_fail_at_random(OS_CALLS_ALL, 2 + *seed % 12, *seed);
  _exit(run_refused());
}

TEST(calls_refused_at_random) {
  for (uint64_t seed = 1; seed <= RANDOM_RUNS; seed++) {
    struct child child = child_run(run_refusing_at_random, &seed);
    int status = child_exit_status(&child);
    if (status != 0) fail_msg("seed %u: exit %d: %s", (unsigned)seed, status, child.said);
  }
}

/* One kind of call refused all the time, the others not. */
struct refused_kind {
  uint32_t kind;
  bool does_half;
};

static void run_refusing_kind(const void *argument) {
  const struct refused_kind *refused = argument;
  const uint32_t *kind = &refused->kind;
  bool is_guards = *kind == OS_CALL_OPEN_PAGES || *kind == OS_CALL_CLOSE_PAGES;
  os_fake.does_half = refused->does_half;
  choose_mode(is_guards ? MODE_GUARDED : MODE_DEFAULT);
  os_fake_fail(1u << *kind, 1, UINT64_MAX);
  os_fake.is_overcommit_strict = *kind == OS_CALL_UNMAP; /* else it is asked only under pressure */
  _exit(run_refused());
}

TEST(one_kind_refused) {
  for (uint32_t run = 0; run < 2 * OS_CALL_COUNT; run++) {
    struct refused_kind refused = {run / 2, run % 2};
    struct child child = child_run(run_refusing_kind, &refused);
    if (child_exit_status(&child) != 0)
      fail_msg("kind %u, half done %d: %s", refused.kind, refused.does_half, child.said);
  }
}

/* Last: every kind of call was refused somewhere, and how often in total. */
TEST(every_kind_was_refused) {
  for (unsigned kind = 0; kind < OS_CALL_COUNT; kind++)
    if (!load_relaxed(&tally->refused[kind])) fail_msg("no call of kind %u was refused", kind);
  printf("tally: %llu faults\n", (unsigned long long)load_relaxed(&tally->runs));
}
