/* options.h: the HAKMEM_* options, read once from the environment.
 *
 * options.def is the only list; reading, HAKMEM_HELP=1 and docs/OPTIONS.md are loops over it.
 * Unknown and malformed options are warned of once and ignored.  Values are constant after
 * options_read(); before it they are the defaults. */
#ifndef HAK_CONFIG_OPTIONS_H
#define HAK_CONFIG_OPTIONS_H

#include "base/compiler.h"

#define OPTION_FIELD_FLAG(field) bool field
#define OPTION_FIELD_NUMBER(field) uint64_t field
#define OPTION_FIELD_TEXT(field) const char *field

struct options {
#define OPTION(kind, field, default_value, minimum, maximum, sentence) OPTION_FIELD_##kind(field);
#include "config/options.def"
#undef OPTION
};

extern struct options options;

/* Reads "HAKMEM_NAME=value" strings (NULL-terminated; NULL for none); false if there are none, so
 * that all values are the defaults. */
bool options_read(char **environment);
/* A number of bytes as people write it: whole, or with a fraction and a unit ("2.5G"; rounded down
 * to a byte). K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024, KB, MB, GB, TB of 1000, as in
 * coreutils; capitals or not. False when not a number, or too large. */
bool bytes_parse(const char *text, uint64_t *bytes);
/* Prints the table on standard error. */
void options_print_help(void);

#endif
