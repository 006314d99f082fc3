/* unit.h: what every unit test includes: cmocka, and tests that register themselves.  A program is
 * one source; its tests run in the order of their lines. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bits.h"

enum { UNIT_TESTS_MAX = 40, UNIT_FIRST_PRIORITY = 101 };

static struct {
  struct CMUnitTest tests[UNIT_TESTS_MAX];
  size_t count;
  void (*before_all)(void), (*before_each)(void), (*before_child)(void), (*after_all)(void);
  const char *argument; /* the program's first; NULL: none */
} unit;

#define UNIT_UNUSED __attribute__((unused))
/* Before main, in the order of the lines: compilers choose the order of constructors without a
 * priority. */
#define UNIT_REGISTER(name) \
  __attribute__((constructor(UNIT_FIRST_PRIORITY + __LINE__))) static void name(void)

/* BEFORE(all) { … }, BEFORE(each) { … } and AFTER(all) { … } are the file's set-up and tear-down,
 * BEFORE(child) { … } that of a test in a process of its own (child.h). */
#define UNIT_FIXTURE(when)                        \
  static void when(void);                         \
  UNIT_REGISTER(set_##when) { unit.when = when; } \
  static void when(void)
#define BEFORE(whom) UNIT_FIXTURE(before_##whom)
#define AFTER(whom) UNIT_FIXTURE(after_##whom)

#define UNIT_RUN_FIXTURE(when)                      \
  static int run_##when(UNIT_UNUSED void **state) { \
    if (unit.when) unit.when();                     \
    return 0;                                       \
  }
UNIT_RUN_FIXTURE(before_all)
UNIT_RUN_FIXTURE(before_each)
UNIT_RUN_FIXTURE(after_all)

static void unit_add(const char *name, CMUnitTestFunction body) {
  if (unit.count == UNIT_TESTS_MAX) abort();
  unit.tests[unit.count++] = (struct CMUnitTest){name, body, run_before_each, NULL, NULL};
}

/* TEST(name) { … } is the test test_NAME. */
#define TEST(name)                                                         \
  static void test_##name(void **);                                        \
  UNIT_REGISTER(register_##name) { unit_add("test_" #name, test_##name); } \
  static void test_##name(UNIT_UNUSED void **state)

int main(int count, char **arguments) {
  if (count > 1) unit.argument = arguments[1];
  return _cmocka_run_group_tests("tests", unit.tests, unit.count, run_before_all, run_after_all);
}

/* The seed is the test's, so that every run is the same. */
static inline size_t random_below(uint64_t *state, size_t bound) {
  return (size_t)(random_next(state) >> 11) % bound;
}

#endif
