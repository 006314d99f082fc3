/* conf.c: reads jemalloc's options where jemalloc does, a later place before an earlier one:
 *
 *   malloc_conf          a variable of the program
 *   /etc/malloc.conf     the target of this symbolic link; both if the library has jemalloc's name
 *   MALLOC_CONF          and _RJEM_MALLOC_CONF, that of Rust's crates
 *
 * Options of hakmem's own (HAKMEM_DECAY_MS, …) win over those that mean the same.  Names that
 * hakmem does not know are accepted. */
#include "base/scan.h"
#include "base/text.h"
#include "config/limits.h"
#include "config/options.h"
#include "heap/library.h"
#include "heap/sampling.h"
#include "heap/thread.h"
#include "jemalloc/names.h"
#include "os/os.h"
#include "reclaim/helper.h"
#include "report/report.h"

EXPORT REPLACEABLE const char *malloc_conf;
EXPORT REPLACEABLE void (*malloc_message)(void *argument, const char *text);

enum { OF_PROGRAM, OF_LINK, OF_ENVIRONMENT, OF_RUST, PLACES, CONF_BYTES = 2048 };
RESIDENT_DATA static const char places[PLACES][20] = {"malloc_conf", "/etc/malloc.conf",
                                                      "MALLOC_CONF", "_RJEM_MALLOC_CONF"};
RARE_DATA static char copies[PLACES][CONF_BYTES]; /* values are pieces of these */
RARE_DATA static bool is_faulty;
static bool acts_at_exit;

/* False where the text has another type. */
static bool parse(unsigned type, const char *text, uint64_t *value) {
  bool is_negative = type == TYPE_SSIZE && *text == '-', is_true = scan_equals(text, "true");
  *value = type == TYPE_BOOL ? is_true : (uint64_t)(uintptr_t)text;
  if (type == TYPE_TEXT) return true;
  if (type == TYPE_BOOL) return is_true || scan_equals(text, "false");
  text += is_negative;
  if (!scan_is_digit(*text) || !scan_number(&text, value) || *text) return false;
  if (is_negative) *value = 0 - *value;
  return type != TYPE_UNSIGNED || *value <= UINT32_MAX;
}

/* "name:value" */
static bool take_pair(const char *pair) {
  const char *colon = scan_for(pair, ':');
  uint64_t value;
  unsigned row = colon ? option_find(pair, (size_t)(colon - pair)) : NAME_ROWS;
  if (row == NAME_ROWS) return colon;
  if (!parse(name_rows[row].type, colon + 1, &value)) return false;
  option_set(row, value);
  return true;
}

static void read_text(char *copy, const char *place, const char *from) {
  struct text text;
  text_init(&text, copy, CONF_BYTES - 1);
  text_string(&text, from);
  for (char *pair = copy, *next; pair; pair = next) {
    next = (char *)(uintptr_t)scan_for(pair, ',');
    if (next) *next++ = 0;
    if (!*pair || (text.wanted_bytes < CONF_BYTES && take_pair(pair))) continue;
    report_line("warning: %s: \"%s\" is not a name:value; ignored", place, pair);
    is_faulty = true;
  }
}

static const char *variable(const char *name) {
  char **environment = os_environment();
  for (; environment && *environment; environment++) {
    const char *rest = scan_past(*environment, name);
    if (rest && *rest == '=') return rest + 1;
  }
  return NULL;
}

enum { DECAY_MAX_MS = 86400000 };
static void apply(void) {
  uint64_t ms = option_value("dirty_decay_ms"), lg_sample = option_value("lg_prof_sample");
  if (option_is_set("dirty_decay_ms") && !variable("HAKMEM_DECAY_MS")) {
    store_relaxed(&limits.keeps_free, (int64_t)ms < 0);
    options.decay_ms = ms < DECAY_MAX_MS ? ms : DECAY_MAX_MS;
  }
  if (option_is_set("background_thread") && !variable("HAKMEM_HELPER_THREAD"))
    options.helper_thread = option_value("background_thread");
  if (option_value("prof") && option_value("prof_active") && !variable("HAKMEM_PROFILE") &&
      heaps_ready())
    sampling_switch(true, period_of_lg(lg_sample));
  acts_at_exit = option_value("stats_print") || option_value("prof_final");
  helper_start_when_worth();
}

COLD static void read_all(const char *const *texts) {
  library_has_options(); /* reads HAKMEM_… */
  for (unsigned place = 0; place < PLACES; place++)
    if (texts[place]) read_text(copies[place], places[place], texts[place]);
  for (unsigned place = 0; option_value("confirm_conf") && place < PLACES; place++)
    report_line("%s: \"%s\"", places[place], texts[place] ? texts[place] : "");
  if (is_faulty && option_value("abort_conf")) os_abort();
  apply();
}

/* In most processes there is nothing to read. */
RUN_AT_LOAD static void conf_at_load(void) {
  const char *texts[PLACES] = {0};
  char link[CONF_BYTES], **environment = os_environment();
  for (; environment && *environment; environment++) {
    unsigned place = **environment == '_' ? OF_RUST : OF_ENVIRONMENT;
    const char *rest = scan_past(*environment, places[place]);
    if (rest && *rest == '=') texts[place] = rest + 1;
  }
  if (&hak_program_says) {
    texts[OF_PROGRAM] = *hak_program_says.conf;
    os_read_link(hak_program_says.link, link, sizeof link);
    if (*link) texts[OF_LINK] = link;
  }
  bool any = texts[OF_PROGRAM] || texts[OF_LINK] || texts[OF_ENVIRONMENT] || texts[OF_RUST];
  if (UNLIKELY(any)) read_all(texts);
}

RUN_AT_EXIT static void conf_at_exit(void) {
  if (LIKELY(!acts_at_exit)) return;
  if (option_value("stats_print")) stats_print(NULL, NULL, option_text("stats_print_opts"));
  if (option_value("prof_final")) profile_dump(NULL);
}
