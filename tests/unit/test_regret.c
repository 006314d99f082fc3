/* src/reclaim/regret: what went back in vain is learnt, and forgotten. */
#include "reclaim/regret.h"

#include "base/counters.h"
#include "config/options.h"
#include "unit.h"

enum { NOW_MS = 100000, A_WHILE_MS = 100 };

static const uint64_t much = 8 << 20, little = 1 << 20;

static void give(uint32_t now_ms, uint64_t bytes) {
  regret_note_given(&(struct purge){.now_ms = now_ms, .purged_bytes = bytes}, false);
}

static uint32_t long_after(uint32_t ms) { return ms + 9 * (uint32_t)options.decay_ms; }

static int begin(void **state) {
  (void)state;
  options.decay_ms = 1000;
  regret_judge(NOW_MS / 2);
  return 0;
}

/* What it has given is taken again at once. */
static void regret(void) {
  give(NOW_MS, much);
  fetch_add_relaxed(&totals.refaulted_bytes, much);
  regret_judge(NOW_MS + A_WHILE_MS);
  assert_int_equal(regret_level(), 1);
}

static void test_taken_again(void **state) {
  (void)state;
  regret();
  regret_judge(NOW_MS + 2 * A_WHILE_MS);
  assert_int_equal(regret_level(), 1);
}

static void test_not_taken_again(void **state) {
  (void)state;
  regret();
  give(NOW_MS + A_WHILE_MS, much);
  regret_judge(long_after(NOW_MS + A_WHILE_MS));
  assert_int_equal(regret_level(), 0);
}

/* A program that frees little later on is not remembered for ever for what it was. */
static void test_little_given_since(void **state) {
  (void)state;
  regret();
  give(NOW_MS + A_WHILE_MS, little);
  regret_judge(long_after(NOW_MS + A_WHILE_MS));
  assert_int_equal(regret_level(), 0);
}

static void test_nothing_given_since(void **state) {
  (void)state;
  regret();
  regret_judge(long_after(NOW_MS + A_WHILE_MS));
  assert_int_equal(regret_level(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_taken_again, begin),
      cmocka_unit_test_setup(test_not_taken_again, begin),
      cmocka_unit_test_setup(test_little_given_since, begin),
      cmocka_unit_test_setup(test_nothing_given_since, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
