#include "observe/report_text.h"

#include "base/scan.h"
#include "hakmem/hakmem.h"
#include "observe/reports.h"
#include "observe/snapshot.h"
#include "observe/stats_block.h"
#include "observe/survey.h"
#include "os/os.h"

void text_line(struct text *text, const char *name, uint64_t value, const char *meaning) {
  text_string(text, "  ");
  text_string_column(text, name, NAME_COLUMNS);
  text_decimal_column(text, value, FIGURE_COLUMNS);
  text_string(text, "  ");
  text_string(text, meaning);
  text_char(text, '\n');
}

/* What is 0 says nothing. */
static void text_line_if_any(struct text *text, const char *name, uint64_t value,
                             const char *meaning) {
  if (value) text_line(text, name, value, meaning);
}

static void text_memory(struct text *text, const struct snapshot *snapshot) {
  text_string(text, "memory (figures that are 0 are left out here and below)\n");
  text_line(text, "mapped_bytes", snapshot->mapped_bytes,
            "SuperSlabs and ranges that have address space");
  text_line_if_any(text, "slab_out_bytes", snapshot->slab_bytes_out,
                   "in blocks up to 32 KiB: live, or cached by threads");
  text_line_if_any(text, "dirty_free_bytes", snapshot->dirty_free_bytes, "free, given back by age");
#define TOTAL(name, role, unit, meaning) text_line_if_any(text, #name, snapshot->name, meaning);
#include "base/counters.def"
}

static void text_counters(struct text *text, const struct snapshot *snapshot) {
  text_string(text, "counters\n");
  for (unsigned which = 0; which < COUNTER_COUNT; which++)
    text_line_if_any(text, counter_name(which), snapshot->counters[which], counter_meaning(which));
}

/* ---- classes --------------------------------------------------------------------------------------------- */

enum { CLASS_COLUMNS = 12 };

static void text_heading(struct text *text, const char *name) {
  size_t length = (size_t)(scan_next(name) - name) - 1;
  for (size_t column = length; column < CLASS_COLUMNS; column++) text_char(text, ' ');
  text_string(text, name);
}

static void text_class(struct text *text, unsigned number, const struct class_survey *class) {
  const uint64_t figures[] = {class_bytes(number), class->live_blocks, class->cached_blocks,
                              class->free_blocks,  class->slabs,       class->counted[0],
                              class->counted[1]};
  text_string(text, "  ");
  text_string_column(text, class_tier_name(number), 5);
  for (unsigned column = 0; column < sizeof figures / sizeof figures[0]; column++)
    text_decimal_column(text, figures[column], CLASS_COLUMNS);
  text_char(text, '\n');
}

static void text_classes(struct text *text, const struct survey *survey) {
  static const char *const headings[] = {"block_bytes", "live",     "cached", "free",
                                         "slabs",       "refilled", "flushed"};
  text_string(text, "classes, blocks\n       ");
  for (unsigned column = 0; column < sizeof headings / sizeof headings[0]; column++)
    text_heading(text, headings[column]);
  text_char(text, '\n');
  for (unsigned number = 0; number < CLASS_COUNT; number++) {
    const struct class_survey *class = &survey->classes[number];
    if (class->capacity_blocks || class->counted[0]) text_class(text, number, class);
  }
}

static uint64_t served_blocks(const struct snapshot *snapshot) {
  return snapshot->counters[COUNT_refilled_blocks] + snapshot->counters[COUNT_large_allocs] +
         snapshot->counters[COUNT_big_allocs];
}

void report_as_text(struct text *text) {
  struct snapshot snapshot;
  struct survey survey;
  snapshot_take(&snapshot);
  survey_take(&survey);
  text_format(text,
              "hakmem %s, process %u: %zu blocks fetched past the magazines (hits are not counted);"
              " %zu heaps in use, %zu of ended threads\n",
              HAKMEM_VERSION, os_process_id(), served_blocks(&snapshot), survey.heaps_in_use,
              survey.heaps_parked);
  text_memory(text, &snapshot);
  text_classes(text, &survey);
  text_counters(text, &snapshot);
}
