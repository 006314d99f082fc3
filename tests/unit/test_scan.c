/* src/base/scan: looking into texts. */
#include "base/scan.h"

#include "unit.h"

static void test_places(void **state) {
  (void)state;
  const char *text = "a:b:c";
  assert_ptr_equal(scan_for(text, ':'), text + 1);
  assert_ptr_equal(scan_for(text + 2, ':'), text + 3);
  assert_ptr_equal(scan_for_last(text, ':'), text + 3);
  assert_ptr_equal(scan_for(text, 'a'), text);
  assert_null(scan_for(text, 'd'));
  assert_null(scan_for_last(text, 'd'));
  assert_null(scan_for("", 'a'));
}

static void test_beginnings(void **state) {
  (void)state;
  const char *text = "text:file";
  assert_ptr_equal(scan_past(text, "text:"), text + 5);
  assert_ptr_equal(scan_past(text, ""), text);
  assert_ptr_equal(scan_past(text, text), text + 9);
  assert_null(scan_past(text, "text:file2"));
  assert_null(scan_past(text, "json:"));
}

static void test_equality(void **state) {
  (void)state;
  assert_true(scan_equals("memory", "memory"));
  assert_true(scan_equals("", ""));
  assert_false(scan_equals("memory", "memor"));
  assert_false(scan_equals("memor", "memory"));
}

static void test_the_next_text(void **state) {
  (void)state;
  const char *texts = "one\0\0two";
  assert_ptr_equal(scan_next(texts), texts + 4);
  assert_ptr_equal(scan_next(texts + 4), texts + 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_beginnings),
      cmocka_unit_test(test_equality),
      cmocka_unit_test(test_the_next_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
