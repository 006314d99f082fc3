/* src/base/text: bounded text without allocation. */
#include "base/text.h"

#include <string.h>

#include "unit.h"

static char buffer[64];
static struct text text;

BEFORE(each) {
  memset(buffer, '#', sizeof buffer);
  text_init(&text, buffer, sizeof buffer - 1);
}

static void assert_text(const char *expected) {
  buffer[text.length_bytes] = 0;
  assert_string_equal(buffer, expected);
  assert_int_equal(text.wanted_bytes, strlen(expected));
}

TEST(numbers) {
  text_format(&text, "%u %zu %#zx %#zx", 0u, SIZE_MAX, (size_t)0, SIZE_MAX);
  assert_text("0 18446744073709551615 0x0 0xffffffffffffffff");
}

TEST(columns) {
  text_format(&text, "%5zu%-4s%2u%-2s%6s", (size_t)42, "ab", 12345u, "long", "right");
  assert_text("   42ab  12345long right");
}

TEST(format) {
  text_format(&text, "%s has %u of %zu at %#zx, %#zx", "it", UINT32_MAX, SIZE_MAX, (size_t)0x10f,
              (size_t)0);
  assert_text("it has 4294967295 of 18446744073709551615 at 0x10f, 0x0");
}

TEST(names) {
  static const char *const names[][2] = {
      {"a b\"c\\", "a b\"c\\"},
      {"tab\tnew\nline\x1b[2J\x7f", "tab?new?line?[2J?"},
      {"caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80"},
      {"\xc2\x9b\x32J\xc2\xa0", "?2J\xc2\xa0"}, /* a control character of two bytes; none */
      {"\xff\x80z", "??z"},
      {"\xc0\x80\xed\xa0\x80", "?????"},
      {"cut\xe2\x82", "cut??"},
      {"", ""},
  };
  for (unsigned which = 0; which < sizeof names / sizeof names[0]; which++) {
    before_each();
    text_name(&text, names[which][0]);
    assert_text(names[which][1]);
  }
}

TEST(what_does_not_fit_is_counted) {
  text_init(&text, buffer, 4);
  text_string(&text, "abcdefg");
  assert_int_equal(text.length_bytes, 4);
  assert_int_equal(text.wanted_bytes, 7);
  assert_memory_equal(buffer, "abcd#", 5);
}

TEST(no_room_at_all) {
  text_init(&text, NULL, 0);
  text_string(&text, "abc");
  assert_int_equal(text.length_bytes, 0);
  assert_int_equal(text.wanted_bytes, 3);
}

static char sunk[128];
static size_t sunk_bytes;

static bool sink(int argument, const char *bytes, size_t byte_count) {
  assert_int_equal(argument, 7);
  memcpy(sunk + sunk_bytes, bytes, byte_count);
  sunk_bytes += byte_count;
  return true;
}

TEST(a_sink_gets_everything_in_order) {
  text_init(&text, buffer, 3);
  text.sink = sink;
  text.sink_argument = 7;
  text_string(&text, "one two three");
  text_flush(&text);
  text_flush(&text); /* nothing left: says nothing */
  assert_int_equal(sunk_bytes, 13);
  assert_memory_equal(sunk, "one two three", 13);
}
