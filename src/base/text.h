/* text.h: text put together in a fixed buffer, without allocation, locale or stdio.
 *
 * Law: length <= capacity; what does not fit is dropped but still counted in `wanted`, so the caller
 * can tell how much room the whole text needs.  A text with a `sink` never drops: it hands the
 * buffer over when it is full. */
#ifndef HAK_BASE_TEXT_H
#define HAK_BASE_TEXT_H

#include <stdarg.h>

#include "base/compiler.h"

struct text {
  char *buffer;
  size_t capacity_bytes;
  size_t length_bytes;
  size_t wanted_bytes;                                              /* length had all fitted */
  void (*sink)(int argument, const char *bytes, size_t byte_count); /* may be NULL */
  int sink_argument;
};

void text_init(struct text *text, char *buffer, size_t capacity_bytes);
void text_char(struct text *text, char character);
void text_string(struct text *text, const char *string);
void text_decimal(struct text *text, uint64_t value);
void text_signed(struct text *text, int64_t value);
void text_hex(struct text *text, uint64_t value); /* with 0x */
/* `numerator / denominator` in percent with one decimal; "0.0" when the denominator is 0. */
void text_percent(struct text *text, uint64_t numerator, uint64_t denominator);
/* Right-aligned decimal in a column of `width` characters. */
void text_decimal_column(struct text *text, uint64_t value, unsigned width);
/* The string, padded with blanks on the right to `width` characters. */
void text_string_column(struct text *text, const char *string, unsigned width);
/* As printf, of whose conversions there are %s, %u, %zu and %#zx (which is text_hex). */
TAKES_FORMAT(2, 3) void text_format(struct text *text, const char *format, ...);
TAKES_FORMAT(2, 0)
void text_format_list(struct text *text, const char *format, va_list arguments);
/* Hands the rest to the sink; a text without one is left as it is. */
void text_flush(struct text *text);

#endif
