/* src/os/lock: mutual exclusion, the order of ranks, and fork. */
#include "os/lock.h"

#include <pthread.h>

#include "child.h"

enum { THREADS = 4, ROUNDS = 20000 };

static struct lock heaps = {.rank = LOCK_RANK_HEAPS}, ranges = {.rank = LOCK_RANK_RANGES};
static struct counters counters;
static uint64_t shared; /* under `ranges` */

static void *count_up(void *argument) {
  struct counters *own = argument;
  for (unsigned round = 0; round < ROUNDS; round++) {
    lock_take(&ranges, own);
    shared++;
    lock_give(&ranges);
  }
  return NULL;
}

static void test_one_at_a_time(void **state) {
  (void)state;
  static struct counters own[THREADS];
  pthread_t threads[THREADS];
  for (unsigned index = 0; index < THREADS; index++)
    assert_int_equal(pthread_create(&threads[index], NULL, count_up, &own[index]), 0);
  for (unsigned index = 0; index < THREADS; index++) pthread_join(threads[index], NULL);
  assert_int_equal(shared, THREADS * ROUNDS);
  for (unsigned index = 0; index < THREADS; index++)
    assert_int_equal(load_relaxed(&own[index].value[COUNT_lock_acquisitions]), ROUNDS);
  assert_int_equal(load_relaxed(&ranges.word), 0);
}

static int take_in_order(const void *unused) {
  (void)unused;
  lock_take(&heaps, &counters);
  lock_take(&ranges, &counters);
  lock_give(&ranges);
  lock_give(&heaps);
  return 0;
}

static int take_in_the_wrong_order(const void *unused) {
  (void)unused;
  lock_take(&ranges, &counters);
  lock_take(&heaps, &counters);
  return 0;
}

static int take_twice(const void *unused) {
  (void)unused;
  struct lock second = {.rank = LOCK_RANK_RANGES};
  lock_take(&ranges, &counters);
  lock_take(&second, &counters); /* two of one rank could meet two others the other way round */
  return 0;
}

static void test_order_of_ranks(void **state) {
  (void)state;
  static const char *const said[] = {"hakmem: assertion failed: ", "ranks_held", NULL};
  assert_child_succeeds(take_in_order, NULL);
  assert_child_reports(take_in_the_wrong_order, NULL, said);
  assert_child_reports(take_twice, NULL, said);
}

/* A lock that nobody can give back. */
static int hold_until_killed(const void *unused) {
  (void)unused;
  lock_take(&ranges, &counters);
  REQUIRE(lock_reset_in_child(&ranges) && !lock_reset_in_child(&ranges));
  REQUIRE(load_relaxed(&ranges.word) == 0);
  REQUIRE(!lock_reset_in_child(&heaps));
  return 0;
}

static void test_reset(void **state) {
  (void)state;
  assert_child_succeeds(hold_until_killed, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_at_a_time),
      cmocka_unit_test(test_order_of_ranks),
      cmocka_unit_test(test_reset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
