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
    if (report->is_json) {
      text_string(text, separator);
      write_key(text, key);
    } else {
      text_format(text, "  %s: ", name_rows[row].name);
    }
    write_value(report, row, j);
    for (; report->is_json && (key = scan_for(key, '.')); key++) text_char(text, '}');
    if (!report->is_json) text_char(text, '\n');
    separator = ",";
    flush(report);
  }
}

static void write_object(struct report *report, const char *begin, const char *prefix, size_t j) {
  text_string(&report->text, begin);
  write_rows(report, prefix, j);
  text_char(&report->text, '}');
}

static void write_bins(struct report *report, const char *key, const char *prefix) {
  text_format(&report->text, ",\"%s\":[", key);
  for (size_t bin = 0; bin < JE_BINS; bin++) write_object(report, bin ? ",{" : "{", prefix, bin);
  text_char(&report->text, ']');
}

static void as_json(struct report *report, bool has_general, bool has_merged, bool has_bins) {
  struct text *text = &report->text;
  text_string(text, "{\"jemalloc\":{\"version\":");
  report_json_string(text, JEMALLOC_VERSION_TEXT);
  if (has_general) {
    write_object(report, ",\"config\":{", "config.", 0);
    write_object(report, ",\"opt\":{", "opt.", 0);
    write_object(report, ",\"prof\":{", "prof.", 0);
    text_string(text, ",\"arenas\":{");
    write_rows(report, "arenas.", 0);
    write_bins(report, "bin", "arenas.bin.<b>.");
    text_char(text, '}');
  }
  write_object(report, ",\"stats\":{", "stats.", 0);
  if (has_merged) {
    text_string(text, ",\"stats.arenas\":{\"merged\":{");
    write_rows(report, "stats.arenas.<i>.", 0);
    if (has_bins) write_bins(report, "bins", "stats.arenas.<i>.bins.<b>.");
    text_string(text, "}}");
  }
  text_string(text, "}}\n");
}

static void as_text(struct report *report, bool has_general, bool has_merged, bool has_bins) {
  struct text *text = &report->text;
  text_format(text, "___ Begin jemalloc statistics ___\nVersion: \"%s\"\n", JEMALLOC_VERSION_TEXT);
  if (has_general) {
    write_rows(report, "opt.", 0);
    write_rows(report, "arenas.", 0);
  }
  text_format(text, "Allocated: %zu, active: %zu, metadata: %zu (n_thp 0), ",
              figure(ARENAS_ALL, FIGURE_LIVE), figure(ARENAS_ALL, FIGURE_ACTIVE),
              figure(ARENAS_ALL, FIGURE_METADATA));
  text_format(text, "resident: %zu, mapped: %zu, retained: %zu\n",
              figure(ARENAS_ALL, FIGURE_RESIDENT), figure(ARENAS_ALL, FIGURE_MAPPED),
              figure(ARENAS_ALL, FIGURE_RETAINED));
  if (has_merged) write_rows(report, "stats.arenas.<i>.", 0);
  for (size_t bin = 0; has_bins && bin < JE_BINS; bin++) {
    if (!bin_figure(ARENAS_ALL, bin, BIN_SLABS)) continue;
    text_format(text, "bin of %zu bytes:\n", je_class_bytes(bin));
    write_rows(report, "stats.arenas.<i>.bins.<b>.", bin);
  }
  text_string(text, "--- End jemalloc statistics ---\n");
}

void stats_print(void (*write)(void *, const char *), void *argument, const char *without) {
  if (!without) without = "";
  struct report report = {
      .write = write, .argument = argument, .is_json = scan_for(without, 'J') != NULL};
  if (!write) report.write = malloc_message ? malloc_message : to_standard_error;
  char *buffer = heap_malloc(BUFFER_BYTES); /* too large for a small thread's stack */
  if (!buffer) return;
  text_init(&report.text, buffer, BUFFER_BYTES - 1);
  figures_sample();
  (report.is_json ? as_json : as_text)(&report, !scan_for(without, 'g'), !scan_for(without, 'm'),
                                       !scan_for(without, 'b'));
  flush(&report);
  heap_free(buffer);
}

EXPORT_UNDECLARED(void, malloc_stats_print, void (*write)(void *, const char *), void *argument,
                  const char *without) {
  stats_print(write, argument, without);
}
