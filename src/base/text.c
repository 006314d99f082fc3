#include "base/text.h"

enum { DECIMAL_DIGITS_MAX = 20 }; /* of 2^64 - 1 */

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

static unsigned decimal_digits(uint64_t value, char digits[DECIMAL_DIGITS_MAX]) {
  unsigned count = 0;
  do {
    digits[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  return count; /* least significant digit first */
}

void text_decimal_column(struct text *text, uint64_t value, unsigned width) {
  char digits[DECIMAL_DIGITS_MAX];
  unsigned count = decimal_digits(value, digits);
  for (unsigned blank = count; blank < width; blank++) text_char(text, ' ');
  while (count) text_char(text, digits[--count]);
}

void text_decimal(struct text *text, uint64_t value) { text_decimal_column(text, value, 0); }

void text_signed(struct text *text, int64_t value) {
  if (value < 0) text_char(text, '-');
  text_decimal(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void text_hex(struct text *text, uint64_t value) {
  text_string(text, "0x");
  unsigned shift = 60;
  while (shift && !(value >> shift)) shift -= 4;
  for (;; shift -= 4) {
    text_char(text, "0123456789abcdef"[(value >> shift) & 15]);
    if (!shift) return;
  }
}

void text_percent(struct text *text, uint64_t numerator, uint64_t denominator) {
  uint64_t tenths = denominator ? (numerator * 1000 + denominator / 2) / denominator : 0;
  text_decimal(text, tenths / 10);
  text_char(text, '.');
  text_char(text, (char)('0' + tenths % 10));
}

void text_string_column(struct text *text, const char *string, unsigned width) {
  unsigned length = 0;
  for (; string[length]; length++) text_char(text, string[length]);
  for (; length < width; length++) text_char(text, ' ');
}

void text_format_list(struct text *text, const char *format, va_list arguments) {
  for (;;) {
    while (*format && *format != '%') text_char(text, *format++);
    if (!*format++) return;
    bool is_hex = *format == '#';
    format += is_hex;
    bool is_wide = *format == 'z';
    format += is_wide;
    if (*format++ == 's')
      text_string(text, va_arg(arguments, const char *));
    else if (is_hex)
      text_hex(text, va_arg(arguments, size_t));
    else
      text_decimal(text, is_wide ? va_arg(arguments, size_t) : va_arg(arguments, unsigned));
  }
}

void text_format(struct text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  text_format_list(text, format, arguments);
  va_end(arguments);
}
