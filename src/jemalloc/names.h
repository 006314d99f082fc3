/* names.h: the table of names (names.def), and what is read and written by it. */
#ifndef HAK_JEMALLOC_NAMES_H
#define HAK_JEMALLOC_NAMES_H

#include "base/compiler.h"
#include "hakmem/hakmem.h"

#define JEMALLOC_VERSION_TEXT \
  "5.3.0-0-g0000000000000000000000000000000000000000 (hakmem " HAKMEM_VERSION ")"

enum { TYPE_BOOL, TYPE_UNSIGNED, TYPE_SIZE, TYPE_SSIZE, TYPE_TEXT, TYPE_BLOCK, TYPE_BLOCKS };
enum { READ = 1, WRITE = 2, OR_NOT = 4, OPTION = 8, ACT = 16 };
enum { NAME_BYTES = 44, LG_PROF_SAMPLE_MAX = 45 };
/* For a row that can do without a value, and got none. */
#define NAME_WITHOUT_VALUE UINT64_MAX

/* Rows in the table's order. */
#define NAME_ROW_(line) NAME_ROW_##line
#define NAME_ROW(line) NAME_ROW_(line)
enum {
#define NAME(access, name, type, read, write) NAME_ROW(__LINE__),
#include "jemalloc/names.def"
  NAME_ROWS
};

/* Texts, not addresses: the dynamic linker would relocate each address in every process. */
struct name_row {
  char name[NAME_BYTES];
  uint8_t type, access;
};
extern const struct name_row name_rows[NAME_ROWS];

/* The numbers in a name: <i>, and <b> or <l>. */
struct name_numbers {
  size_t i, j;
};
/* The row's value, in 64 bits; may set *error. */
uint64_t name_read(unsigned row, const struct name_numbers *numbers, int *error);
/* An errno. */
int name_write(unsigned row, const struct name_numbers *numbers, uint64_t value);

struct question {
  void *old;
  size_t *old_bytes;
  const void *new;
  size_t new_bytes;
};
/* For a row whose values are a block, or any number of them, and their answers; an errno. */
int utilization(bool is_batch, const struct question *question);

/* Options of MALLOC_CONF, by their names without "opt.": the row, NAME_ROWS for none; sets a
 * value, 0; whether it was set; its value, or the default. */
unsigned option_find(const char *name, size_t name_bytes);
int option_set(unsigned row, uint64_t value);
bool option_is_set(const char *name);
/* R of its logarithm, of which the largest possible one stands for all larger. */
size_t period_of_lg(uint64_t lg);
uint64_t option_value(const char *name);
const char *option_text(const char *name);

/* Writes the heap profile to a file of this name; NULL: PREFIX.PROCESS.NUMBER.mNUMBER.heap. And
 * sets the prefix. Errnos. */
int profile_dump(const char *path);
int set_prefix(const char *prefix);

/* malloc_stats_print. */
void stats_print(void (*write)(void *, const char *), void *argument, const char *without);

/* Only in libraries with jemalloc's name (etc.c), as each variable of the program is looked up when
 * a process starts: a symbolic link with options; options; and a way to write what would go to
 * standard error. */
struct program_says {
  const char *link, *const *conf;
  void (*const *message)(void *argument, const char *text);
};
extern const struct program_says hak_program_says WEAK HIDDEN;
/* The program's own definitions come first. */
extern const char *malloc_conf;
extern void (*malloc_message)(void *argument, const char *text);

#endif
