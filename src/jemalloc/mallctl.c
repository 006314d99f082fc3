/* mallctl.c: jemalloc's questions by name, as its manual describes them.  They return an errno, and
 * leave errno alone.
 *
 *   name   stats.arenas.0.bins.3.curregs
 *   MIB    row   row   0  row  3  row      its number in the table; numbers are themselves */
#include <errno.h>
#include <string.h>

#include "base/scan.h"
#include "jemalloc/arenas.h"
#include "jemalloc/names.h"

enum { EPOCH = 0 }; /* the first row, which is read after it is written */
enum { PLACEHOLDER_BYTES = 3 };

/* ---- lookup ---------------------------------------------------------------------------------- */

/* Takes a number for a placeholder; false when there is nothing of that number. */
static bool take_number(const char *placeholder, uint64_t number, struct name_numbers *numbers) {
  char kind = placeholder[1];
  *(kind == 'i' ? &numbers->i : &numbers->j) = number;
  return kind == 'i' ? je_arena_exists(number)
                     : number < (kind == 'b' ? JE_BINS : JE_LARGE_CLASSES);
}

static bool matches(const char *name, const char *pattern, struct name_numbers *numbers) {
  while (*pattern) {
    uint64_t number;
    if (*pattern != '<') {
      if (*name++ != *pattern++) return false;
      continue;
    }
    if (!scan_is_digit(*name) || !scan_number(&name, &number)) return false;
    if (!take_number(pattern, number, numbers)) return false;
    pattern += PLACEHOLDER_BYTES;
  }
  return !*name;
}

/* The row of a name; NAME_ROWS if there is none. */
static unsigned find(const char *name, struct name_numbers *numbers) {
  unsigned row = 0;
  if (!name) return NAME_ROWS;
  while (row < NAME_ROWS && !matches(name, name_rows[row].name, numbers)) row++;
  return row;
}

static const char *next_component(const char *at) {
  while (*at && *at != '.') at++;
  return at + (*at == '.');
}

/* The row of a MIB; each name ends in a component that is not a number. */
static unsigned find_mib(const size_t *mib, size_t length, struct name_numbers *numbers) {
  if (!mib || !length || mib[length - 1] >= NAME_ROWS) return NAME_ROWS;
  unsigned row = (unsigned)mib[length - 1];
  const char *at = name_rows[row].name;
  for (size_t place = 0; place < length; place++) {
    bool is_right = *at == '<' ? take_number(at, mib[place], numbers) : mib[place] == row;
    if (!*at || !is_right) return NAME_ROWS;
    at = next_component(at);
  }
  return *at ? NAME_ROWS : row;
}

/* ---- answers --------------------------------------------------------------------------------- */

static size_t bytes_of(unsigned type) {
  return type == TYPE_BOOL       ? sizeof(bool)
         : type == TYPE_UNSIGNED ? sizeof(unsigned)
                                 : sizeof(size_t);
}

/* An errno for a question that the row does not answer. */
static int check(const struct name_row *row, const struct question *question) {
  if ((question->old || question->old_bytes) && !(row->access & READ)) return EPERM;
  if ((question->new || question->new_bytes) && !(row->access & WRITE)) return EPERM;
  bool is_right = question->new ? question->new_bytes == bytes_of(row->type) : row->access != WRITE;
  if (row->access == (READ | ACT)) { /* reading makes one */
    is_right = question->old && question->old_bytes && *question->old_bytes == bytes_of(row->type);
    if (!is_right && question->old_bytes) *question->old_bytes = 0;
  }
  return is_right ? 0 : EINVAL;
}

/* As much of the value as there is room for. */
static int give(const struct question *question, uint64_t value, size_t bytes) {
  size_t room = *question->old_bytes;
  *question->old_bytes = room < bytes ? room : bytes;
  memcpy(question->old, &value, *question->old_bytes); /* little-endian */
  return room == bytes ? 0 : EINVAL;
}

static int answer(unsigned row, const struct name_numbers *numbers,
                  const struct question *question) {
  if (row == NAME_ROWS) return ENOENT;
  const struct name_row *name = &name_rows[row];
  if (name->type >= TYPE_BLOCK) return utilization(name->type == TYPE_BLOCKS, question);
  int error = check(name, question);
  if (error) return error;
  int errno_before = errno;
  bool is_read = question->old && question->old_bytes;
  bool is_written = !(name->access & READ) || question->new;
  uint64_t value = question->new ? 0 : NAME_WITHOUT_VALUE, old = 0;
  if (question->new) memcpy(&value, question->new, question->new_bytes);
  if (row == EPOCH && is_written) error = name_write(row, numbers, value);
  if (is_read) old = name_read(row, numbers, &error);
  if (is_read && !error) error = give(question, old, bytes_of(name->type));
  if (row != EPOCH && is_written && !error) error = name_write(row, numbers, value);
  errno = errno_before;
  return error;
}

EXPORT_UNDECLARED(int, mallctl, const char *name, void *old, size_t *old_bytes, void *new,
                  size_t new_bytes) {
  struct name_numbers numbers = {0};
  unsigned row = find(name, &numbers);
  return answer(row, &numbers, &(struct question){old, old_bytes, new, new_bytes});
}

/* *length: the room; then the components that were written. */
EXPORT_UNDECLARED(int, mallctlnametomib, const char *name, size_t *mib, size_t *length) {
  struct name_numbers numbers = {0};
  unsigned row = find(name, &numbers);
  if (row == NAME_ROWS) return ENOENT;
  if (!mib || !length) return EINVAL;
  size_t place = 0;
  for (const char *at = name_rows[row].name; *at && place < *length; place++) {
    mib[place] = *at != '<' ? row : at[1] == 'i' ? numbers.i : numbers.j;
    at = next_component(at);
  }
  *length = place;
  return 0;
}

EXPORT_UNDECLARED(int, mallctlbymib, const size_t *mib, size_t length, void *old, size_t *old_bytes,
                  void *new, size_t new_bytes) {
  struct name_numbers numbers = {0};
  unsigned row = find_mib(mib, length, &numbers);
  return answer(row, &numbers, &(struct question){old, old_bytes, new, new_bytes});
}
