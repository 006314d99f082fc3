#include "jemalloc/names.h"

#include <errno.h>

#include "api/malloc_family.h"
#include "base/scan.h"
#include "config/limits.h"
#include "config/options.h"
#include "heap/sampling.h"
#include "jemalloc/arenas.h"
#include "profile/control.h"
#include "purge/purge.h"

const struct name_row name_rows[NAME_ROWS] = {
#define NAME(access, name, type, read, write) {name, TYPE_##type, access},
#include "jemalloc/names.def"
};

static uint64_t text_value(const char *text) { return (uint64_t)(uintptr_t)text; }
static const char *text_of(uint64_t value) {
  return value == NAME_WITHOUT_VALUE ? NULL : (const char *)(uintptr_t)value;
}
static int check(bool is_possible) { return is_possible ? 0 : EFAULT; }
static int purge(bool is_all) { return family_purge(is_all), 0; }
static int thread_idle(void) { return family_thread_idle(), 0; }

/* Hakmem has one time, that of its option, for all arenas. At run time -1 keeps free memory, and 0
 * gives it back now; other times change nothing else. */
static const uint64_t decay_never = UINT64_MAX;
static uint64_t decay_ms(void) {
  return load_relaxed(&limits.keeps_free) ? decay_never : options.decay_ms;
}
static int check_decay_ms(uint64_t ms) {
  return check(ms == decay_never || ms <= INT64_MAX / 1000000);
}
static int set_decay_ms(size_t number, uint64_t ms) {
  if (check_decay_ms(ms)) return EFAULT;
  if (!number || number == ARENAS_ALL) store_relaxed(&limits.keeps_free, ms == decay_never);
  return ms ? 0 : purge(true);
}

/* Options, and settings of the program that have no effect but to be read back. */
RARE_DATA static ATOMIC(uint64_t) given[NAME_ROWS];
RARE_DATA static ATOMIC(bool) is_given[NAME_ROWS];

int option_set(unsigned row, uint64_t value) {
  store_relaxed(&given[row], value);
  store_relaxed(&is_given[row], true);
  return 0;
}

unsigned option_find(const char *name, size_t name_bytes) {
  unsigned row = 0;
  for (; row < NAME_ROWS; row++) {
    const char *at = name_rows[row].name + sizeof "opt";
    size_t same = 0;
    while (same < name_bytes && at[same] == name[same]) same++;
    if (name_rows[row].access & OPTION && same == name_bytes && !at[same]) break;
  }
  return row;
}

static unsigned row_of(const char *name) {
  return option_find(name, (size_t)(scan_next(name) - name) - 1);
}
enum { LG_PROF_SAMPLE = 19 };
static uint64_t lg_sample(void) {
  unsigned row = row_of("lg_prof_sample");
  if (profile_is_on()) return highest_bit(profile_period_bytes());
  return load_relaxed(&is_given[row]) ? load_relaxed(&given[row]) : LG_PROF_SAMPLE;
}
size_t period_of_lg(uint64_t lg) {
  return (size_t)1 << (lg < LG_PROF_SAMPLE_MAX ? lg : LG_PROF_SAMPLE_MAX);
}
static int set_profile(bool is_on, uint64_t lg) {
  return check(sampling_switch(is_on, period_of_lg(lg)) || !is_on);
}
/* Samples are kept: only the period changes. */
static int reset_profile(uint64_t lg) {
  return profile_is_on() && lg != NAME_WITHOUT_VALUE ? set_profile(true, lg) : 0;
}

bool option_is_set(const char *name) { return load_relaxed(&is_given[row_of(name)]); }
uint64_t option_value(const char *name) {
  int error;
  return name_read(row_of(name), &(struct name_numbers){0}, &error);
}
const char *option_text(const char *name) { return text_of(option_value(name)); }

/* ---- the table ------------------------------------------------------------------------------- */

/* clang-format off */
uint64_t name_read(unsigned row, const struct name_numbers *numbers, int *error) {
  size_t i = numbers->i, j = numbers->j;
  if (load_relaxed(&is_given[row])) return load_relaxed(&given[row]);
  switch (row) {
#define NAME(access, name, type, read, write) case NAME_ROW(__LINE__): return (uint64_t)(read);
#include "jemalloc/names.def"
    default: *error = ENOENT; return 0;
  }
}

int name_write(unsigned row, const struct name_numbers *numbers, uint64_t value) {
  size_t i = numbers->i;
  switch (row) {
#define NAME(access, name, type, read, write) case NAME_ROW(__LINE__): return (write);
#include "jemalloc/names.def"
    default: return ENOENT;
  }
}
