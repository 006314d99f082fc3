/* src/reclaim: a slow path does one step of what is due, however much is due at once and however slow the system is. */
#include "memory_use.h"

/* PAGE_CALLS_A_SCAN; of the last SuperSlab all runs of free slots go. */
enum { CALLS_A_STEP = 128, RUNS_OF_A_SUPERSLAB = 16, ROUNDS = 400 };
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

CHILD_TESTS(one_step, bool, is_multi_threaded, false, true) {
  begin(is_multi_threaded);
  most_calls = most_ns = 0;
  uint64_t before = look().purged_bytes;
  os_fake.purge_ns_a_page = SLOW_NS_A_PAGE;
  options.big_cache_bytes = 16 * MIB; /* and now all is too much, and old, and free pages wait */
  for (unsigned round = 0; round < ROUNDS; round++) {
    os_fake_advance_ms(round % 8 ? 10 : 1500);
    timed_free(timed_malloc(2 * MIB));
    timed_free(timed_malloc(100 + round % 8 * 5000));
  }
  REQUIRE(most_calls <= CALLS_A_STEP + RUNS_OF_A_SUPERSLAB);
  REQUIRE(most_ns <= LONGEST_NS);
  REQUIRE(look().purged_bytes - before >= 150 * MIB && look().dirty_free_bytes <= 20 * MIB);
}

/* One free block that is far larger than a step, and ranges that the process grows by while others are free. */
CHILD_TESTS(part, bool, is_multi_threaded, false, true) {
  os_fake.is_multi_threaded = is_multi_threaded;
  options.helper_thread = 0;
  start_library();
  os_fake.purge_ns_a_page = SLOW_NS_A_PAGE;
  os_fake.processor_ms = 100000; /* it may offset its growth */
  most_calls = most_ns = 0;
  timed_free(timed_malloc(1024 * MIB));
  for (unsigned round = 0; round < 2 * ROUNDS; round++) {
    os_fake_advance_ms(100);
    timed_free(timed_malloc(2 * MIB));
    if (round % 256 == 0 && round < ROUNDS) timed_free(timed_malloc((1100 + round) * MIB));
  }
  REQUIRE(most_calls <= CALLS_A_STEP + RUNS_OF_A_SUPERSLAB);
  REQUIRE(most_ns <= LONGEST_NS);
  REQUIRE(look().dirty_free_bytes <= 300 * MIB);
}
