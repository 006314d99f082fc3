/* src/base/text: bounded text without allocation. */
#include "base/text.h"

#include <string.h>

#include "unit.h"

static char buffer[64];
static struct text text;

static int begin(void **state) {
  (void)state;
  memset(buffer, '#', sizeof buffer);
  text_init(&text, buffer, sizeof buffer - 1);
  return 0;
}

static void assert_text(const char *expected) {
  buffer[text.length_bytes] = 0;
  assert_string_equal(buffer, expected);
  assert_int_equal(text.wanted_bytes, strlen(expected));
}

static void test_decimal(void **state) {
  (void)state;
  text_decimal(&text, 0);
  text_char(&text, ' ');
  text_decimal(&text, UINT64_MAX);
  assert_text("0 18446744073709551615");
}

static void test_signed(void **state) {
  (void)state;
  text_signed(&text, INT64_MIN);
  text_char(&text, ' ');
  text_signed(&text, 7);
  assert_text("-9223372036854775808 7");
}

static void test_hex(void **state) {
  (void)state;
  text_hex(&text, 0);
  text_char(&text, ' ');
  text_hex(&text, UINT64_C(0x10f));
  text_char(&text, ' ');
  text_hex(&text, UINT64_MAX);
  assert_text("0x0 0x10f 0xffffffffffffffff");
}

static void test_percent(void **state) {
  (void)state;
  text_percent(&text, 1, 3);
  text_char(&text, ' ');
  text_percent(&text, 2, 3);
  text_char(&text, ' ');
  text_percent(&text, 5, 5);
  text_char(&text, ' ');
  text_percent(&text, 5, 0);
  assert_text("33.3 66.7 100.0 0.0");
}

static void test_columns(void **state) {
  (void)state;
  text_decimal_column(&text, 42, 5);
  text_string_column(&text, "ab", 4);
  text_decimal_column(&text, 12345, 2);
  text_string_column(&text, "long", 2);
  assert_text("   42ab  12345long");
}

static void test_format(void **state) {
  (void)state;
  text_format(&text, "%s has %u of %zu at %#zx, %#zx", "it", UINT32_MAX, SIZE_MAX, (size_t)0x10f,
              (size_t)0);
  assert_text("it has 4294967295 of 18446744073709551615 at 0x10f, 0x0");
}

static void test_what_does_not_fit_is_counted(void **state) {
  (void)state;
  text_init(&text, buffer, 4);
  text_string(&text, "abcdefg");
  assert_int_equal(text.length_bytes, 4);
  assert_int_equal(text.wanted_bytes, 7);
  assert_memory_equal(buffer, "abcd#", 5);
}

static void test_no_room_at_all(void **state) {
  (void)state;
  text_init(&text, NULL, 0);
  text_string(&text, "abc");
  assert_int_equal(text.length_bytes, 0);
  assert_int_equal(text.wanted_bytes, 3);
}

static char sunk[128];
static size_t sunk_bytes;

static void sink(int argument, const char *bytes, size_t byte_count) {
  assert_int_equal(argument, 7);
  memcpy(sunk + sunk_bytes, bytes, byte_count);
  sunk_bytes += byte_count;
}

static void test_a_sink_gets_everything_in_order(void **state) {
  (void)state;
  text_init(&text, buffer, 3);
  text.sink = sink;
  text.sink_argument = 7;
  text_string(&text, "one two three");
  text_flush(&text);
  text_flush(&text); /* nothing left: says nothing */
  assert_int_equal(sunk_bytes, 13);
  assert_memory_equal(sunk, "one two three", 13);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_decimal, begin),
      cmocka_unit_test_setup(test_signed, begin),
      cmocka_unit_test_setup(test_hex, begin),
      cmocka_unit_test_setup(test_percent, begin),
      cmocka_unit_test_setup(test_columns, begin),
      cmocka_unit_test_setup(test_format, begin),
      cmocka_unit_test_setup(test_what_does_not_fit_is_counted, begin),
      cmocka_unit_test_setup(test_no_room_at_all, begin),
      cmocka_unit_test_setup(test_a_sink_gets_everything_in_order, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
