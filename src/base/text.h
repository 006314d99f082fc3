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
/* The bytes of the UTF-8 sequence that begins there; 0: none does (RFC 3629, section 4). */
unsigned utf8_bytes(const unsigned char *at);
/* What the program calls something: any bytes, which stay on one line and steer no terminal.  "?" for each control character, and
 * each byte that is no UTF-8. */
void text_name(struct text *text, const char *name);
/* As printf, of whose conversions there are %s, %u, %zu, %#zx and %%, with a width ("%8zu", "%-8s"). */
TAKES_FORMAT(2, 3) void text_format(struct text *text, const char *format, ...);
TAKES_FORMAT(2, 0)
void text_format_list(struct text *text, const char *format, va_list arguments);
/* Hands the rest to the sink; a text without one is left as it is. */
void text_flush(struct text *text);

#endif
