/* src/base/peek: whole words, and nothing beside them. */
#include "base/peek.h"

#include "unit.h"

static void test_copies_as_much_as_asked(void **state) {
  (void)state;
  uintptr_t source[4] = {1, UINTPTR_MAX, 3, 4}, target[4] = {9, 9, 9, 9};
  peek(target, source, 2 * sizeof *source);
  assert_int_equal(target[0], 1);
  assert_true(target[1] == UINTPTR_MAX);
  assert_int_equal(target[2], 9);
}

static void test_nothing(void **state) {
  (void)state;
  uintptr_t source = 1, target = 9;
  peek(&target, &source, 0);
  assert_int_equal(target, 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_copies_as_much_as_asked),
      cmocka_unit_test(test_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
