#include "base/scan.h"
#include "config/options.h"

static char lower(char character) {
  return character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
}

/* The number of bytes in a unit; 0 when it is not a unit. */
static uint64_t worth_of(const char *unit) {
  static const char letters[] = "kmgt";
  const char *letter = *unit ? scan_for(letters, lower(*unit)) : NULL;
  if (!letter) return *unit == 0 || (lower(unit[0]) == 'b' && !unit[1]);
  bool is_decimal = lower(unit[1]) == 'b';
  const char *rest = lower(unit[1]) == 'i' && lower(unit[2]) == 'b' ? unit + 3
                     : is_decimal                                   ? unit + 2
                                                                    : unit + 1;
  uint64_t worth = 1;
  for (const char *at = letters; at <= letter; at++) worth *= is_decimal ? 1000 : 1024;
  return *rest ? 0 : worth;
}

/* More digits than a size needs. */
enum { FRACTION_DIGITS_MAX = 9 };

/* Parses the digits after the point, in parts of 10^digits; returns the rest of the text, or
 * NULL. */
static const char *parse_fraction(const char *text, uint64_t *fraction, uint64_t *whole) {
  unsigned digits = 0;
  for (; scan_is_digit(*text); text++) {
    if (++digits > FRACTION_DIGITS_MAX) return NULL;
    *fraction = *fraction * 10 + (uint64_t)(*text - '0');
    *whole *= 10;
  }
  return digits ? text : NULL;
}

bool bytes_parse(const char *text, uint64_t *bytes) {
  uint64_t number, fraction = 0, whole = 1;
  if (!scan_is_digit(*text) || !scan_number(&text, &number)) return false;
  bool has_fraction = *text == '.';
  if (has_fraction) text = parse_fraction(text + 1, &fraction, &whole);
  uint64_t worth = text ? worth_of(text) : 0;
  if (!worth || (has_fraction && worth == 1)) return false;
  return !multiply_overflows(number, worth, &number) &&
         !multiply_overflows(fraction, worth, &fraction) &&
         !add_overflows(number, fraction / whole, bytes);
}
