#include "config/options.h"

#include "base/scan.h"
#include "base/text.h"
#include "os/os.h"
#include "report/report.h"

enum option_kind { OPTION_FLAG, OPTION_NUMBER, OPTION_TEXT };

/* Offsets, not addresses: the dynamic linker would relocate each address in every process. */
struct option_row {
  uint64_t minimum, maximum;
  uint16_t texts;  /* in `texts` */
  uint16_t target; /* in `options` */
  enum option_kind kind;
};

/* For each option its field ("decay_ms" for HAKMEM_DECAY_MS), default and sentence, each ended by a
 * 0. */
#define TEXTS_OF(field, default_value, sentence) #field "\0" #default_value "\0" sentence
struct option_texts {
#define OPTION(kind, field, default_value, minimum, maximum, sentence) \
  char field[sizeof(TEXTS_OF(field, default_value, sentence))];
#include "config/options.def"
#undef OPTION
};
static const struct option_texts texts = {
#define OPTION(kind, field, default_value, minimum, maximum, sentence) \
  .field = TEXTS_OF(field, default_value, sentence),
#include "config/options.def"
#undef OPTION
};

struct options options = {
#define OPTION(kind, field, default_value, minimum, maximum, sentence) .field = default_value,
#include "config/options.def"
#undef OPTION
};

static const struct option_row rows[] = {
#define OPTION(kind, field, default_value, minimum, maximum, sentence)                      \
  {minimum, maximum, offsetof(struct option_texts, field), offsetof(struct options, field), \
   OPTION_##kind},
#include "config/options.def"
#undef OPTION
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0], OPTION_TEXTS_BYTES = 4096 };

static const char *field_of(const struct option_row *row) {
  return (const char *)&texts + row->texts;
}

static void *target_of(const struct option_row *row) { return (char *)&options + row->target; }

RESIDENT_DATA static const char prefix[] = "HAKMEM_";

static char upper(char character) {
  return character >= 'a' && character <= 'z' ? (char)(character - 'a' + 'A') : character;
}

static void write_name(struct text *name, const struct option_row *row) {
  text_string(name, prefix);
  for (const char *at = field_of(row); *at; at++) text_char(name, upper(*at));
}

/* The value part when `string` is "HAKMEM_<FIELD>=value", else NULL. */
static const char *value_for(const struct option_row *row, const char *string) {
  string += sizeof prefix - 1;
  const char *field = field_of(row);
  for (; *field; field++, string++)
    if (*string != upper(*field)) return NULL;
  return *string == '=' ? string + 1 : NULL;
}

/* A whole number, optionally with K, M or G. */
static bool parse_number(const char *text, uint64_t *number) {
  const char *end = text;
  while (*end >= '0' && *end <= '9') end++;
  if (*end && (!scan_for("KMG", upper(*end)) || end[1])) return false;
  return bytes_parse(text, number);
}

/* The unit stands last in the name. */
static bool is_in_bytes(const struct option_row *row) {
  const char *unit = scan_for_last(field_of(row), '_');
  return unit && scan_equals(unit, "_bytes");
}

static void warn_malformed(const struct option_row *row, const char *value) {
  struct report_line line;
  struct text *text = report_begin(&line);
  text_string(text, "warning: ");
  write_name(text, row);
  text_format(text, "=\"%s\" is not ", value);
  if (row->kind == OPTION_FLAG) {
    text_string(text, "0 or 1");
  } else if (row->kind == OPTION_TEXT) {
    text_string(text, "a text of at most 4000 bytes");
  } else if (is_in_bytes(row)) {
    text_format(text, "a size (64M, 64MiB, 64MB, 1.5G) from %zu to %zu bytes", row->minimum,
                row->maximum);
  } else {
    text_format(text, "a whole number from %zu to %zu", row->minimum, row->maximum);
  }
  text_string(text, "; ignored");
  report_end(&line);
}

/* Programs overwrite their environment when they set their process title: texts are copied. */
static void set_text(const struct option_row *row, const char *value) {
  RARE_DATA static char copies[OPTION_TEXTS_BYTES];
  static size_t used_bytes;
  struct text copy;
  text_init(&copy, copies + used_bytes, OPTION_TEXTS_BYTES - used_bytes);
  text_string(&copy, value);
  text_char(&copy, 0);
  if (copy.length_bytes != copy.wanted_bytes) {
    warn_malformed(row, value);
    return;
  }
  *(const char **)target_of(row) = copy.buffer;
  used_bytes += copy.length_bytes;
}

static void set(const struct option_row *row, const char *value) {
  uint64_t number;
  if (row->kind == OPTION_TEXT) {
    set_text(row, value);
  } else if (!(is_in_bytes(row) ? bytes_parse : parse_number)(value, &number) ||
             number < row->minimum || number > row->maximum) {
    warn_malformed(row, value);
  } else if (row->kind == OPTION_FLAG) {
    *(bool *)target_of(row) = number != 0;
  } else {
    *(uint64_t *)target_of(row) = number;
  }
}

static void warn_unknown(const char *string) {
  struct report_line line;
  struct text *text = report_begin(&line);
  text_string(text, "warning: ");
  while (*string && *string != '=') text_char(text, *string++);
  text_string(text, " is not an option (HAKMEM_HELP=1 lists them); ignored");
  report_end(&line);
}

static void read_one(const char *string) {
  for (unsigned row = 0; row < ROW_COUNT; row++) {
    const char *value = value_for(&rows[row], string);
    if (value) {
      set(&rows[row], value);
      return;
    }
  }
  warn_unknown(string);
}

RESIDENT bool options_read(char **environment) {
  bool any = false;
  if (!environment) return false;
  for (; *environment; environment++) {
    if (!scan_past(*environment, prefix)) continue;
    read_one(*environment);
    any = true;
  }
  return any;
}

enum { HELP_NAME_COLUMNS = 34, STANDARD_ERROR = 2 };

static void print_row(struct text *text, const struct option_row *row) {
  size_t begin = text->wanted_bytes;
  text_string(text, "  ");
  write_name(text, row);
  while (text->wanted_bytes < begin + 2 + HELP_NAME_COLUMNS) text_char(text, ' ');
  const char *value = scan_next(field_of(row)), *sentence = scan_next(value);
  text_format(text, "%s (default %s)\n", sentence, value);
}

static void print_help(struct text *text) {
  text_string(text, "hakmem: options, from the environment\n");
  for (unsigned row = 0; row < ROW_COUNT; row++) print_row(text, &rows[row]);
}

void options_print_help(void) { report_to_descriptor(print_help, STANDARD_ERROR); }
