/* text.h: text put together in a fixed buffer, without allocation, locale or stdio.
 *
 * Law: length <= capacity. Bytes that do not fit are dropped but still counted in `wanted`, so the
 * caller knows how much room the whole text needs. A text with a `sink` drops nothing: it hands the
 * buffer over when it is full. */
#ifndef HAK_BASE_TEXT_H
#define HAK_BASE_TEXT_H

#include <stdarg.h>

#include "base/compiler.h"

struct text {
  char *buffer;
  size_t capacity_bytes;
  size_t length_bytes;
  size_t wanted_bytes; /* the length, had everything fitted */
  bool (*sink)(int argument, const char *bytes, size_t byte_count); /* may be NULL */
  int sink_argument;
};

void text_init(struct text *text, char *buffer, size_t capacity_bytes);
void text_char(struct text *text, char character);
void text_string(struct text *text, const char *string);
/* The length of the UTF-8 sequence at `at`; 0 if there is none (RFC 3629, section 4). */
unsigned utf8_bytes(const unsigned char *at);
/* Appends a name that the program chose: any bytes, kept on one line and without terminal control.
 * Each control character, and each byte that is not UTF-8, becomes "?". */
void text_name(struct text *text, const char *name);
/* A subset of printf: %s, %u, %zu, %#zx and %%, with a width ("%8zu", "%-8s"). */
TAKES_FORMAT(2, 3) void text_format(struct text *text, const char *format, ...);
TAKES_FORMAT(2, 0)
void text_format_list(struct text *text, const char *format, va_list arguments);
/* Hands the rest to the sink; does nothing without one. */
void text_flush(struct text *text);

#endif
