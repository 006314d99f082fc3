/* scan.h: searches in texts that end with a 0.
 *
 * Not the C library's functions: each of its names that hakmem uses is looked up at the start of every process,
 * and these are needed by few (docs/decisions/0012). */
#ifndef HAK_BASE_SCAN_H
#define HAK_BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* The first place of a character at or after `text`, or NULL. */
INLINE const char *scan_for(const char *text, char wanted) {
  for (; *text; text++)
    if (*text == wanted) return text;
  return NULL;
}

/* The last one. */
INLINE const char *scan_for_last(const char *text, char wanted) {
  const char *last = NULL;
  for (; (text = scan_for(text, wanted)); text++) last = text;
  return last;
}

/* What follows when `text` begins with `start`, or NULL. */
INLINE const char *scan_past(const char *text, const char *start) {
  for (; *start; text++, start++)
    if (*text != *start) return NULL;
  return text;
}

INLINE bool scan_equals(const char *text, const char *other) {
  const char *rest = scan_past(text, other);
  return rest && !*rest;
}

/* What follows the text and its 0. */
INLINE const char *scan_next(const char *text) {
  while (*text++) {
  }
  return text;
}

#endif
