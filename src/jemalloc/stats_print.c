/* stats_print.c: malloc_stats_print: in jemalloc's frame the table of names with their values, as
 * JSON; as text hakmem's own report. */
#include "base/scan.h"
#include "base/text.h"
#include "heap/fast_path.h"
#include "jemalloc/arenas.h"
#include "jemalloc/names.h"
#include "observe/report_heaps.h"
#include "observe/reports.h"
#include "os/os.h"

/* For a report: JSON takes 20 KiB. */
enum { BUFFER_BYTES = 128 << 10, STANDARD_ERROR = 2 };

static void write_to_standard_error(void *unused, const char *text) {
  (void)unused;
  os_write(STANDARD_ERROR, text, (size_t)(scan_next(text) - text) - 1);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_value(struct text *text, unsigned row, size_t j) {
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

/* Members: all rows that begin so and can be read without an effect. A dot in what is left of a
 * name makes an object of one member. */
static void write_rows(struct text *text, const char *before, const char *prefix, size_t j) {
  const char *separator = "\"";
  text_string(text, before);
  for (unsigned row = 0; row < NAME_ROWS; row++) {
    const char *key = scan_past(name_rows[row].name, prefix), *at = key;
    if (!key || (name_rows[row].access & (READ | ACT)) != READ || scan_for(key, '<')) continue;
    text_string(text, separator);
    separator = ",\"";
    for (; *at; at++) text_format(text, *at == '.' ? "\":{\"" : "%s", (char[]){*at, 0});
    text_string(text, "\":");
    write_value(text, row, j);
    while ((key = scan_for(key, '.'))) text_char(text, '}'), key++;
  }
}

static void write_bins(struct text *text, const char *before, const char *prefix) {
  text_string(text, before);
  for (size_t bin = 0; bin < JE_BINS; bin++) write_rows(text, bin ? "},{" : "{", prefix, bin);
  text_string(text, "}]");
}

static void write_json(struct text *text, const char *without) {
  text_string(text, "{\"jemalloc\":{\"version\":");
  report_json_string(text, JEMALLOC_VERSION_TEXT);
  write_rows(text, ",\"stats\":{", "stats.", 0);
  if (!scan_for(without, 'g')) {
    write_rows(text, "},\"config\":{", "config.", 0);
    write_rows(text, "},\"opt\":{", "opt.", 0);
    write_rows(text, "},\"arenas\":{", "arenas.", 0);
    write_bins(text, ",\"bin\":[", "arenas.bin.<b>.");
  }
  if (!scan_for(without, 'm')) {
    write_rows(text, "},\"stats.arenas\":{\"merged\":{", "stats.arenas.<i>.", 0);
    if (!scan_for(without, 'b')) write_bins(text, ",\"bins\":[", "stats.arenas.<i>.bins.<b>.");
    text_char(text, '}');
  }
  text_string(text, "}}}\n");
}

/* ---- text ------------------------------------------------------------------------------------ */

static void write_text(struct text *text) {
  text_format(text, "___ Begin jemalloc statistics ___\nVersion: \"%s\"\n", JEMALLOC_VERSION_TEXT);
  text_format(text, "Allocated: %zu, active: %zu, metadata: %zu (n_thp 0), ",
              figure(ARENAS_ALL, FIGURE_LIVE), figure(ARENAS_ALL, FIGURE_ACTIVE),
              figure(ARENAS_ALL, FIGURE_METADATA));
  text_format(text, "resident: %zu, mapped: %zu, retained: %zu\n",
              figure(ARENAS_ALL, FIGURE_RESIDENT), figure(ARENAS_ALL, FIGURE_MAPPED),
              figure(ARENAS_ALL, FIGURE_RETAINED));
  report_as_text(text);
  text_string(text, "--- End jemalloc statistics ---\n");
}

void stats_print(void (*write)(void *, const char *), void *argument, const char *without) {
  struct text text;
  char *buffer = heap_malloc(BUFFER_BYTES);
  if (!buffer) return;
  if (!write && &hak_program_says) write = *hak_program_says.message;
  if (!write) write = write_to_standard_error;
  text_init(&text, buffer, BUFFER_BYTES - 1);
  figures_sample();
  if (without && scan_for(without, 'J'))
    write_json(&text, without);
  else
    write_text(&text);
  buffer[text.length_bytes] = 0;
  write(argument, buffer);
  heap_free(buffer);
}

void malloc_stats_print(void (*write)(void *, const char *), void *argument, const char *without)
    EXPORT_ALIAS_OF(stats_print);
