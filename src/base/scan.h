/* scan.h: searches in texts that end with a 0.
 *
 * Used instead of the C library's functions: each name of them that hakmem used would be looked up
 * at the start of every process, and few processes need these (docs/decisions/0012). */
#ifndef HAK_BASE_SCAN_H
#define HAK_BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"

/* The first place of the character at or after `text`, or NULL. */
INLINE const char *scan_for(const char *text, char wanted) {
  for (; *text; text++)
    if (*text == wanted) return text;
  return NULL;
}

/* The last place of it. */
INLINE const char *scan_for_last(const char *text, char wanted) {
  const char *last = NULL;
  for (; (text = scan_for(text, wanted)); text++) last = text;
  return last;
}

/* The rest of `text` after `start`, or NULL if it does not begin with `start`. */
INLINE const char *scan_past(const char *text, const char *start) {
  for (; *start; text++, start++)
    if (*text != *start) return NULL;
  return text;
}

INLINE bool scan_equals(const char *text, const char *other) {
  const char *rest = scan_past(text, other);
  return rest && !*rest;
}

/* The rest of the first line that begins with `start`, or NULL. */
INLINE const char *scan_line(const char *text, const char *start) {
  const char *rest = scan_past(text, start);
  while (!rest && (text = scan_for(text, '\n'))) rest = scan_past(++text, start);
  return rest;
}

INLINE bool scan_is_digit(char character) { return character >= '0' && character <= '9'; }
/* The number whose digits begin at *text, which is moved past them, 0 where there are none; false
 * when it is too large. */
INLINE bool scan_number(const char **text, uint64_t *number) {
  *number = 0;
  for (; scan_is_digit(**text); ++*text)
    if (multiply_overflows(*number, 10, number) ||
        add_overflows(*number, (uint64_t)(**text - '0'), number))
      return false;
  return true;
}

/* The address after the text's final 0. */
INLINE const char *scan_next(const char *text) {
  while (*text++) {
  }
  return text;
}

#endif
