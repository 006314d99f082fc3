/* Any environment at all: what is read stays within the table's bounds, and every complaint is a
 * warning.  The input is a list of strings, each ended by a zero byte or by the input's end. */
#include "config/options.h"

#include <string.h>

#include "fake/os_fake.h"
#include "fuzz.h"

enum { STRINGS_MAX = 64, TEXT_MAX_BYTES = 1 << 14 };

static void check_number(uint64_t value, uint64_t minimum, uint64_t maximum) {
  REQUIRE(value >= minimum && value <= maximum);
}

/* A bool that is neither would show in its byte. */
static void check_flag(const bool *flag) {
  unsigned char byte;
  memcpy(&byte, flag, 1);
  REQUIRE(byte <= 1);
}

static void check_text(const char *text) {
  REQUIRE(text);
  REQUIRE(strlen(text) <= 4000);
}

#define CHECK_FLAG(field, minimum, maximum) check_flag(&options.field)
#define CHECK_NUMBER(field, minimum, maximum) check_number(options.field, minimum, maximum)
#define CHECK_PART(field, minimum, maximum) check_number(options.field, minimum, maximum)
#define CHECK_TEXT(field, minimum, maximum) check_text(options.field)

static void check_bounds(void) {
#define OPTION(kind, field, default_value, minimum, maximum, sentence) \
  CHECK_##kind(field, minimum, maximum);
#include "config/options.def"
#undef OPTION
}

static unsigned split(char *text, char **strings) {
  unsigned count = 0;
  for (char *at = text; count < STRINGS_MAX && *at; at += strlen(at) + 1) strings[count++] = at;
  strings[count] = NULL;
  return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct options defaults;
  static bool has_defaults;
  static char text[TEXT_MAX_BYTES + 2]; /* two zeroes end it */
  char *strings[STRINGS_MAX + 1];
  if (!has_defaults) {
    defaults = options;
    has_defaults = true;
  }
  if (size > TEXT_MAX_BYTES) return 0;
  memset(text, 0, sizeof text);
  if (size) memcpy(text, data, size);
  unsigned count = split(text, strings);
  options = defaults;
  os_fake_forget_written();
  options_read(strings);
  check_bounds();
  if (os_fake.written_bytes) {
    REQUIRE(count);
    REQUIRE(strncmp(os_fake.written, "hakmem: warning: ", 17) == 0);
  }
  return 0;
}
