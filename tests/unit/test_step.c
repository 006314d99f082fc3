/* src/reclaim: a slow path does one step of what is due, however much is due at once. */
#include "memory_use.h"

/* As in reclaim.c's table; of the last SuperSlab all runs of free slots go. */
enum { CALLS_A_STEP = 96, RUNS_OF_A_SUPERSLAB = 16, ROUNDS = 400 };
#define BYTES_A_STEP (8 * MIB)

struct kind {
  size_t bytes;
  unsigned count;
};
static const struct kind kinds[] = {
    {200, 30000}, {5000, 6000}, {20000, 2000}, {40 << 10, 2000}, {300 << 10, 200}};

static uint64_t most_calls, most_bytes;

/* What one call of the library has asked of the system, and given back. */
static void note(uint64_t calls, uint64_t bytes) {
  calls = load_relaxed(&os_fake.calls[OS_CALL_PURGE]) - calls;
  bytes = look().purged_bytes - bytes;
  if (calls > most_calls) most_calls = calls;
  if (bytes > most_bytes) most_bytes = bytes;
}

static void *timed_malloc(size_t size) {
  uint64_t calls = load_relaxed(&os_fake.calls[OS_CALL_PURGE]), bytes = look().purged_bytes;
  void *block = must_malloc(size);
  note(calls, bytes);
  return block;
}

static void timed_free(void *block) {
  uint64_t calls = load_relaxed(&os_fake.calls[OS_CALL_PURGE]), bytes = look().purged_bytes;
  hak_free(block);
  note(calls, bytes);
}

/* One block in eight lives on, so that slabs have free pages, and free ranges are small: one goes as a whole. */
static void leave_survivors(const struct kind *kind) {
  for (unsigned index = 0; index < kind->count; index++) blocks[index] = must_malloc(kind->bytes);
  for (unsigned index = 0; index < kind->count; index++)
    if (index % 8) hak_free(blocks[index]);
}

static void begin(bool is_multi_threaded) {
  os_fake.is_multi_threaded = is_multi_threaded;
  options.helper_thread = 0;
  start_library();
  options.big_cache_bytes = 1024 * MIB; /* nothing goes before its time */
  for (unsigned kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
    leave_survivors(&kinds[kind]);
  hak_free(timed_malloc(2 * MIB)); /* the next round is armed */
}

static int do_one_step(const void *is_multi_threaded) {
  begin(is_multi_threaded != NULL);
  most_calls = most_bytes = 0;
  uint64_t before = look().purged_bytes;
  options.big_cache_bytes = 16 * MIB; /* and now all is too much, and old, and free pages wait */
  for (unsigned round = 0; round < ROUNDS; round++) {
    os_fake_advance_ms(round % 8 ? 10 : 1500);
    timed_free(timed_malloc(2 * MIB));
    timed_free(timed_malloc(100 + round % 8 * 5000));
  }
  REQUIRE(most_calls <= CALLS_A_STEP + RUNS_OF_A_SUPERSLAB);
  REQUIRE(most_bytes <= BYTES_A_STEP + 4 * MIB);
  REQUIRE(look().purged_bytes - before >= 150 * MIB && look().dirty_free_bytes <= 20 * MIB);
  return 0;
}

static void test_alone(void **state) {
  (void)state;
  assert_child_succeeds(do_one_step, NULL);
}

static void test_with_threads(void **state) {
  (void)state;
  assert_child_succeeds(do_one_step, "threads");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alone),
      cmocka_unit_test(test_with_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
