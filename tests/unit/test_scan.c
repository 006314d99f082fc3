/* src/base/scan: looking into texts. */
#include "base/scan.h"

#include "unit.h"

TEST(places) {
  const char *text = "a:b:c";
  assert_ptr_equal(scan_for(text, ':'), text + 1);
  assert_ptr_equal(scan_for(text + 2, ':'), text + 3);
  assert_ptr_equal(scan_for_last(text, ':'), text + 3);
  assert_ptr_equal(scan_for(text, 'a'), text);
  assert_null(scan_for(text, 'd'));
  assert_null(scan_for_last(text, 'd'));
  assert_null(scan_for("", 'a'));
}

TEST(beginnings) {
  const char *text = "text:file";
  assert_ptr_equal(scan_past(text, "text:"), text + 5);
  assert_ptr_equal(scan_past(text, ""), text);
  assert_ptr_equal(scan_past(text, text), text + 9);
  assert_null(scan_past(text, "text:file2"));
  assert_null(scan_past(text, "json:"));
}

TEST(lines_and_numbers) {
  const char *text = "\nab: 1\nb: 18446744073709551615", *last = scan_line(text, "b: ");
  uint64_t number;
  assert_true(scan_number(&last, &number) && number == UINT64_MAX && !*last);
  assert_null(scan_line(text, "c"));
}

TEST(equality) {
  assert_true(scan_equals("memory", "memory"));
  assert_true(scan_equals("", ""));
  assert_false(scan_equals("memory", "memor"));
  assert_false(scan_equals("memor", "memory"));
}

TEST(the_next_text) {
  const char *texts = "one\0\0two";
  assert_ptr_equal(scan_next(texts), texts + 4);
  assert_ptr_equal(scan_next(texts + 4), texts + 5);
}
