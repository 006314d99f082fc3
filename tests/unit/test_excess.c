/* src/reclaim/excess: in a program with one thread what is too much goes at once. */
#include "reclaim/excess.h"

#include "memory_use.h"

enum { BLOCK_BYTES = 1000, MANY = 60000, FEW = 20000 };

static void *others[MANY];

static void begin(void) {
  os_fake.is_multi_threaded = false;
  options.helper_thread = 0;
  start_library();
  options.big_cache_bytes = 16 * MIB;
}

static void take(void **table, unsigned count) {
  for (unsigned index = 0; index < count; index++) table[index] = must_malloc(BLOCK_BYTES);
}

static void give(void **table, unsigned count) {
  for (unsigned index = 0; index < count; index++) hak_free(table[index]);
}

static uint64_t purged_since(uint64_t before) { return look().purged_bytes - before; }

/* No time passes, and nothing but frees comes. */
static int give_while_it_frees(const void *unused) {
  (void)unused;
  begin();
  take(others, MANY);
  uint64_t before = look().purged_bytes;
  give(others, MANY);
  REQUIRE(purged_since(before) >= 30 * MIB);
  REQUIRE(look().dirty_free_bytes <= 24 * MIB);
  return 0;
}

/* Less than that is kept while it frees, and goes when it has stopped. */
static int give_when_it_stops(const void *unused) {
  (void)unused;
  begin();
  options.big_cache_bytes = 128 * MIB;
  take(others, MANY);
  uint64_t before = look().purged_bytes;
  give(others, MANY);
  REQUIRE(purged_since(before) == 0);
  for (unsigned turn = 0; turn < 4000; turn++) hak_free(must_malloc(BLOCK_BYTES));
  REQUIRE(purged_since(before) >= 40 * MIB);
  return 0;
}

/* A forked child, say: the blocks of a thread that did not come along are as live as its own. */
static int leave_others_alone(const void *unused) {
  (void)unused;
  begin();
  take(others, MANY);
  heap_of_thread = (struct heap *)(uintptr_t)&empty_heap; /* the next block makes a heap */
  take(blocks, FEW);
  uint64_t before = look().purged_bytes;
  give(blocks, FEW);
  REQUIRE(purged_since(before) == 0);
  return 0;
}

CHILD_TEST(give_while_it_frees)
CHILD_TEST(give_when_it_stops)
CHILD_TEST(leave_others_alone)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_give_while_it_frees),
      cmocka_unit_test(test_give_when_it_stops),
      cmocka_unit_test(test_leave_others_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
