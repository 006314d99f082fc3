#include "observe/reports.h"

#include "base/scan.h"
#include "config/options.h"
#include "observe/snapshot.h"
#include "observe/stats_block.h"
#include "os/os.h"
#include "report/report.h"

enum { STANDARD_ERROR = 2 };

static const enum counter pool_paths[] = {
    COUNT_acquire_empty, COUNT_acquire_unused, COUNT_acquire_lru,
    COUNT_acquire_os,    COUNT_released_slabs,
};
enum { POOL_PATH_COUNT = sizeof pool_paths / sizeof pool_paths[0] };

void report_pool_acquisitions(struct text *text) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  uint64_t total = 0;
  for (unsigned path = 0; path < POOL_PATH_COUNT; path++)
    total += snapshot.counters[pool_paths[path]];
  text_format(text, "hakmem: shared pool slow-path acquisitions: %zu\n", total);
  for (unsigned path = 0; path < POOL_PATH_COUNT; path++) {
    enum counter which = pool_paths[path];
    uint64_t times = snapshot.counters[which];
    uint64_t tenths = total ? (times * 1000 + total / 2) / total : 0; /* of a percent */
    text_format(text, "  %-32s%16zu  %zu.%zu%%  %s\n", counter_name(which), times, tenths / 10,
                tenths % 10, counter_meaning(which));
  }
  text_line(text, "cas_retries", snapshot.counters[COUNT_cas_retries], "lock-free steps repeated");
  text_line(text, "lock_acquisitions", snapshot.counters[COUNT_lock_acquisitions],
            "locks of ranges and of the list of heaps; the pool has none");
  text_line(text, "lock_waits", snapshot.counters[COUNT_lock_waits], "of those, that had to wait");
}

/* "%p" becomes the process id; -1 when it does not fit. */
static int create_file(const char *pattern) {
  char path[4096];
  struct text text;
  text_init(&text, path, sizeof path - 1);
  for (; *pattern; pattern++) {
    if (pattern[0] == '%' && pattern[1] == 'p') {
      text_format(&text, "%u", os_process_id());
      pattern++;
    } else {
      text_char(&text, *pattern);
    }
  }
  path[text.length_bytes] = 0;
  return text.wanted_bytes == text.length_bytes ? os_create_file(path) : -1;
}

static void report_to_file(void (*report)(struct text *), const char *pattern) {
  int descriptor = create_file(pattern);
  if (descriptor < 0) {
    report_line("warning: HAKMEM_STATS: cannot write %s; no report", pattern);
    return;
  }
  report_to_descriptor(report, descriptor);
  os_close(descriptor);
}

static int exit_descriptor = STANDARD_ERROR;

static const char text_prefix[] = "text:", json_prefix[] = "json:";

/* Whether another malloc serves the process, perhaps a second hakmem's, whose report an empty one
 * would replace. */
static bool is_idle_beside_another(void) {
  struct snapshot snapshot;
  if (os_symbol_is_ours("malloc")) return false;
  snapshot_take(&snapshot);
  const uint64_t *counters = snapshot.counters;
  return !(counters[COUNT_refilled_blocks] | counters[COUNT_large_allocs] |
           counters[COUNT_big_allocs]);
}

static void report_as_json_line(struct text *text) {
  report_as_json(text);
  text_char(text, '\n');
}

COLD static void report_stats(const char *how) {
  if (scan_equals(how, "0")) return;
  const char *text_file = scan_past(how, text_prefix), *json_file = scan_past(how, json_prefix);
  if (is_idle_beside_another())
    report_line("no report: process %u uses another malloc; this libhakmem served no request",
                os_process_id());
  else if (scan_equals(how, "1") || scan_equals(how, "text"))
    report_to_descriptor(report_as_text, exit_descriptor);
  else if (scan_equals(how, "json"))
    report_to_descriptor(report_as_json_line, exit_descriptor);
  else if (text_file || json_file)
    report_to_file(text_file ? report_as_text : report_as_json_line,
                   text_file ? text_file : json_file);
  else
    report_line("warning: HAKMEM_STATS=\"%s\" is not 1, json, text:FILE or json:FILE; ignored",
                how);
}

RESIDENT void reports_at_exit(void) {
  if (options.stats[0]) report_stats(options.stats); /* in few processes */
  if (options.shared_pool_lock_stats)
    report_to_descriptor(report_pool_acquisitions, exit_descriptor);
}

RESIDENT void reports_at_load(void) {
  if (!options.stats[0] && !options.shared_pool_lock_stats)
    return; /* most processes: no option text is read */
  bool to_file = scan_past(options.stats, text_prefix) || scan_past(options.stats, json_prefix);
  if ((options.stats[0] && !to_file) || options.shared_pool_lock_stats)
    exit_descriptor = os_duplicate(STANDARD_ERROR);
}
