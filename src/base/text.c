#include "base/text.h"

#include "base/scan.h"

void text_init(struct text *text, char *buffer, size_t capacity_bytes) {
  *text = (struct text){.buffer = buffer, .capacity_bytes = capacity_bytes};
}

void text_flush(struct text *text) {
  if (text->sink && text->length_bytes) {
    text->sink(text->sink_argument, text->buffer, text->length_bytes);
    text->length_bytes = 0;
  }
}

void text_char(struct text *text, char character) {
  text->wanted_bytes++;
  if (text->length_bytes == text->capacity_bytes) text_flush(text);
  if (text->length_bytes < text->capacity_bytes) text->buffer[text->length_bytes++] = character;
}

void text_string(struct text *text, const char *string) {
  while (*string) text_char(text, *string++);
}

/* ---- names ----------------------------------------------------------------------------------- */

unsigned utf8_bytes(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  unsigned count = at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF5 ? 4 : 0;
  unsigned lowest = at[0] == 0xE0 ? 0xA0 : at[0] == 0xF0 ? 0x90 : 0x80;
  unsigned highest = at[0] == 0xED ? 0x9F : at[0] == 0xF4 ? 0x8F : 0xBF;
  if (count && (at[1] < lowest || at[1] > highest)) return 0;
  for (unsigned place = 2; place < count; place++)
    if ((at[place] & 0xC0) != 0x80) return 0;
  return count;
}

/* The control characters of ASCII and of Latin-1: 0 to 31 and 127; 128 to 159, two bytes each. */
static bool is_control(const unsigned char *at) {
  return at[0] < ' ' || at[0] == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0);
}

void text_name(struct text *text, const char *name) {
  for (const unsigned char *at = (const unsigned char *)name; *at;) {
    unsigned count = utf8_bytes(at);
    if (!count || is_control(at)) {
      text_char(text, '?');
      at += count ? count : 1;
      continue;
    }
    while (count--) text_char(text, (char)*at++);
  }
}

/* ---- formats --------------------------------------------------------------------------------- */

struct conversion {
  bool is_left, is_hex, is_wide;
  uint64_t width;
};

/* Returns the place of the conversion's letter. */
static const char *parse(const char *format, struct conversion *conversion) {
  *conversion = (struct conversion){.is_left = *format == '-'};
  format += conversion->is_left;
  conversion->is_hex = *format == '#';
  format += conversion->is_hex;
  scan_number(&format, &conversion->width);
  conversion->is_wide = *format == 'z';
  return format + conversion->is_wide;
}

static void append_blanks(struct text *text, size_t length, size_t width) {
  for (; length < width; length++) text_char(text, ' ');
}

static void append_string(struct text *text, const char *string,
                          const struct conversion *conversion) {
  size_t length = (size_t)(scan_next(string) - string) - 1;
  if (!conversion->is_left) append_blanks(text, length, conversion->width);
  text_string(text, string);
  if (conversion->is_left) append_blanks(text, length, conversion->width);
}

static void append_number(struct text *text, uint64_t value, const struct conversion *conversion) {
  char digits[20]; /* fits 2^64 - 1; least significant first */
  unsigned count = 0, base = conversion->is_hex ? 16 : 10;
  do digits[count++] = "0123456789abcdef"[value % base];
  while (value /= base);
  if (conversion->is_hex) text_string(text, "0x");
  append_blanks(text, count, conversion->width);
  while (count) text_char(text, digits[--count]);
}

void text_format_list(struct text *text, const char *format, va_list arguments) {
  struct conversion conversion;
  for (;;) {
    while (*format && *format != '%') text_char(text, *format++);
    if (!*format++) return;
    format = parse(format, &conversion);
    if (*format == '%')
      text_char(text, *format++);
    else if (*format++ == 's')
      append_string(text, va_arg(arguments, const char *), &conversion);
    else if (conversion.is_wide)
      append_number(text, va_arg(arguments, size_t), &conversion);
    else
      append_number(text, va_arg(arguments, unsigned), &conversion);
  }
}

void text_format(struct text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  text_format_list(text, format, arguments);
  va_end(arguments);
}
