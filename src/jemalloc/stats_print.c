/* stats_print.c: malloc_stats_print: the table of names with their values, in jemalloc's frame. */
#include "base/scan.h"
#include "base/text.h"
#include "heap/fast_path.h"
#include "jemalloc/arenas.h"
#include "jemalloc/names.h"
#include "observe/report_heaps.h"
#include "os/os.h"

enum { BUFFER_BYTES = 16384, STANDARD_ERROR = 2 };

struct report {
  void (*write)(void *, const char *);
  void *argument;
  struct text text;
  bool is_json;
};

static void to_standard_error(void *unused, const char *text) {
  (void)unused;
  os_write(STANDARD_ERROR, text, (size_t)(scan_next(text) - text) - 1);
}

static void flush(struct report *report) {
  struct text *text = &report->text;
  text->buffer[text->length_bytes] = 0;
  if (text->length_bytes) report->write(report->argument, text->buffer);
  text->length_bytes = 0;
}

static void write_value(struct report *report, unsigned row, size_t j) {
  struct text *text = &report->text;
  int error = 0;
  uint64_t value = name_read(row, &(struct name_numbers){ARENAS_ALL, j}, &error);
  bool is_negative = name_rows[row].type == TYPE_SSIZE && (int64_t)value < 0;
  if (name_rows[row].type == TYPE_TEXT)
    report_json_string(text, (const char *)(uintptr_t)value);
  else if (name_rows[row].type == TYPE_BOOL)
    text_string(text, value ? "true" : "false");
  else
    text_format(text, "%s%zu", is_negative ? "-" : "", (size_t)(is_negative ? 0 - value : value));
}

/* A JSON key; one with dots is that of an object with one member. */
static void write_key(struct text *text, const char *key) {
  text_char(text, '"');
  for (; *key; key++)
    if (*key == '.')
      text_string(text, "\":{\"");
    else
      text_char(text, *key);
  text_string(text, "\":");
}

/* All rows that begin so and can be read without an effect: lines, or members of a JSON object. */
static void write_rows(struct report *report, const char *prefix, size_t j) {
  struct text *text = &report->text;
  const char *separator = "";
  for (unsigned row = 0; row < NAME_ROWS; row++) {
    const char *key = scan_past(name_rows[row].name, prefix);
    if (!key || (name_rows[row].access & (READ | ACT)) != READ || scan_for(key, '<')) continue;
    text_string(text, separator);
    separator = report->is_json ? "," : "";
    if (report->is_json)
      write_key(text, key);
    else
      text_format(text, "  %s: ", name_rows[row].name);
    write_value(report, row, j);
    for (; report->is_json && (key = scan_for(key, '.')); key++) text_char(text, '}');
    if (!report->is_json) text_char(text, '\n');
    flush(report);
  }
}

/* All bins in JSON, else those with slabs. */
static void write_bins(struct report *report, const char *key, const char *prefix) {
  struct text *text = &report->text;
  if (report->is_json) text_format(text, ",\"%s\":[", key);
  for (size_t bin = 0; bin < JE_BINS; bin++) {
    if (!report->is_json && !bin_figure(ARENAS_ALL, bin, BIN_SLABS)) continue;
    if (report->is_json)
      text_string(text, bin ? ",{" : "{");
    else
      text_format(text, "bin of %zu bytes:\n", je_class_bytes(bin));
    write_rows(report, prefix, bin);
    if (report->is_json) text_char(text, '}');
  }
  if (report->is_json) text_char(text, ']');
}

/* An object of JSON, up to its end; else lines. */
static void begin_part(struct report *report, const char *json, const char *prefix) {
  if (report->is_json) text_string(&report->text, json);
  write_rows(report, prefix, 0);
}

static void write_report(struct report *report, const char *without) {
  struct text *text = &report->text;
  text_string(text, report->is_json ? "{\"jemalloc\":{\"version\":"
                                    : "___ Begin jemalloc statistics ___\nVersion: ");
  report_json_string(text, JEMALLOC_VERSION_TEXT);
  if (!report->is_json)
    text_format(text, "\nAllocated: %zu, active: %zu, metadata: %zu (n_thp 0), ",
                figure(ARENAS_ALL, FIGURE_LIVE), figure(ARENAS_ALL, FIGURE_ACTIVE),
                figure(ARENAS_ALL, FIGURE_METADATA));
  if (!report->is_json)
    text_format(text, "resident: %zu, mapped: %zu, retained: %zu\n",
                figure(ARENAS_ALL, FIGURE_RESIDENT), figure(ARENAS_ALL, FIGURE_MAPPED),
                figure(ARENAS_ALL, FIGURE_RETAINED));
  begin_part(report, ",\"stats\":{", "stats.");
  if (!scan_for(without, 'g')) {
    begin_part(report, "},\"config\":{", "config.");
    begin_part(report, "},\"opt\":{", "opt.");
    begin_part(report, "},\"arenas\":{", "arenas.");
    if (report->is_json) write_bins(report, "bin", "arenas.bin.<b>.");
  }
  if (!scan_for(without, 'm')) {
    begin_part(report, "},\"stats.arenas\":{\"merged\":{", "stats.arenas.<i>.");
    if (!scan_for(without, 'b')) write_bins(report, "bins", "stats.arenas.<i>.bins.<b>.");
    if (report->is_json) text_char(text, '}');
  }
  text_string(text, report->is_json ? "}}}\n" : "--- End jemalloc statistics ---\n");
}

void stats_print(void (*write)(void *, const char *), void *argument, const char *without) {
  struct report report = {.write = write, .argument = argument};
  if (!write) report.write = malloc_message ? malloc_message : to_standard_error;
  char *buffer = heap_malloc(BUFFER_BYTES); /* too large for a small thread's stack */
  if (!buffer) return;
  text_init(&report.text, buffer, BUFFER_BYTES - 1);
  figures_sample();
  report.is_json = without && scan_for(without, 'J');
  write_report(&report, without ? without : "");
  flush(&report);
  heap_free(buffer);
}

EXPORT_UNDECLARED(void, malloc_stats_print, void (*write)(void *, const char *), void *argument,
                  const char *without) {
  stats_print(write, argument, without);
}
