/* src/config/options: reading the environment, and what is said of mistakes. */
#include "config/options.h"

#include <stdio.h>
#include <string.h>

#include "fake/os_fake.h"
#include "unit.h"

static struct options defaults;

BEFORE(all) { defaults = options; }

BEFORE(each) {
  options = defaults;
  os_fake_forget_written();
}

static void read_one(const char *string) {
  char copy[256];
  char *environment[] = {(char[]){"PATH=/bin"}, copy, NULL};
  strcpy(copy, string);
  assert_true(options_read(environment));
}

static void assert_warns(const char *string, const char *line) {
  os_fake_forget_written();
  read_one(string);
  assert_string_equal(os_fake.written, line);
}

static void assert_silent(void) { assert_string_equal(os_fake.written, ""); }

TEST(numbers) {
  read_one("HAKMEM_DECAY_MS=250");
  assert_int_equal(options.decay_ms, 250);
  read_one("HAKMEM_DECAY_MS=0");
  assert_int_equal(options.decay_ms, 0);
  assert_silent();
}

TEST(suffixes) {
  read_one("HAKMEM_BIG_CACHE_BYTES=3K");
  assert_int_equal(options.big_cache_bytes, 3 << 10);
  read_one("HAKMEM_BIG_CACHE_BYTES=5m");
  assert_int_equal(options.big_cache_bytes, 5 << 20);
  read_one("HAKMEM_BIG_CACHE_BYTES=1.5MB"); /* a size: bytes_parse */
  assert_int_equal(options.big_cache_bytes, 1500000);
  read_one("HAKMEM_BIG_CACHE_BYTES=2G");
  assert_int_equal(options.big_cache_bytes, UINT64_C(2) << 30);
  assert_silent();
}

TEST(flags) {
  read_one("HAKMEM_ROUTE_P=0");
  assert_false(options.route_p);
  read_one("HAKMEM_ROUTE_P=1");
  assert_true(options.route_p);
  assert_silent();
}

TEST(text) {
  static char setting[] = "HAKMEM_STATS=json:/tmp/x=y";
  char *environment[] = {setting, NULL};
  options_read(environment);
  assert_string_equal(options.stats, "json:/tmp/x=y");
  assert_silent();
}

TEST(malformed_numbers_are_ignored) {
  static const char *const values[] = {
      "",        "x", "-1", "1.5", "7 ", "7KB", "99999999999999999999", "18446744073709551615G",
      "86400001"};
  for (size_t index = 0; index < sizeof values / sizeof values[0]; index++) {
    char setting[64] = "HAKMEM_DECAY_MS=", line[256];
    strcat(setting, values[index]);
    snprintf(line, sizeof line,
             "hakmem: warning: HAKMEM_DECAY_MS=\"%s\" is not a whole number from 0 to 86400000; "
             "ignored\n",
             values[index]);
    assert_warns(setting, line);
    assert_int_equal(options.decay_ms, defaults.decay_ms);
  }
}

TEST(malformed_flags_are_ignored) {
  assert_warns("HAKMEM_ROUTE_P=2",
               "hakmem: warning: HAKMEM_ROUTE_P=\"2\" is not 0 or 1; ignored\n");
  assert_warns("HAKMEM_ROUTE_P=yes",
               "hakmem: warning: HAKMEM_ROUTE_P=\"yes\" is not 0 or 1; ignored\n");
  assert_true(options.route_p == defaults.route_p);
}

TEST(below_the_minimum) {
  read_one("HAKMEM_WINDOW_GIB=0");
  assert_int_equal(options.window_gib, defaults.window_gib);
  assert_non_null(strstr(os_fake.written, "HAKMEM_WINDOW_GIB=\"0\" is not a whole number from 1"));
}

TEST(unknown_options) {
  assert_warns(
      "HAKMEM_DECAY=5",
      "hakmem: warning: HAKMEM_DECAY is not an option (HAKMEM_HELP=1 lists them); ignored\n");
  assert_warns(
      "HAKMEM_DECAY_MSX=5",
      "hakmem: warning: HAKMEM_DECAY_MSX is not an option (HAKMEM_HELP=1 lists them); ignored\n");
}

TEST(others_variables_are_not_ours) {
  char *environment[] = {(char[]){"PATH=/bin"}, (char[]){"HAKME=1"}, (char[]){"XHAKMEM_HELP=1"},
                         (char[]){"HAKMEMX=1"}, NULL};
  assert_false(options_read(environment));
  assert_false(options_read(NULL));
  assert_silent();
  assert_memory_equal(&options, &defaults, sizeof options);
}

TEST(help_lists_every_option) {
  options_print_help();
#define OPTION(kind, field, default_value, minimum, maximum, sentence) \
  assert_non_null(strstr(os_fake.written, sentence));
#include "config/options.def"
#undef OPTION
  assert_non_null(strstr(os_fake.written, "  HAKMEM_DECAY_MS "));
  assert_non_null(strstr(os_fake.written, "(default 1000)\n"));
}
