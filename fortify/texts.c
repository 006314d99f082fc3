/* texts.c: str* and stp*. */
#include <stdlib.h>
#include <string.h>

#include "fortify/check.h"
#include "fortify/memory.h"

#define CHARACTER char
#define STR(name) str##name
#define STP(name) stp##name
#define STR_CHK(name) __str##name##_chk
#define STP_CHK(name) __stp##name##_chk
#define TEXT_LENGTH REAL_OR(strlen, loop_length)
#define TEXT_LENGTH_MAX REAL_OR(strnlen, loop_within)
#include "fortify/texts.def"

EXPORT char *strndup(const char *text, size_t most) {
  return copy_into_block(text, length_within("strndup", text, most));
}

/* Names that old headers call. */
char *__stpcpy(char *restrict, const char *restrict) EXPORT_ALIAS_OF(stpcpy);
char *__strdup(const char *) EXPORT_ALIAS_OF(strdup);
char *__strndup(const char *, size_t) EXPORT_ALIAS_OF(strndup);
