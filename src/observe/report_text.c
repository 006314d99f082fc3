#include "hakmem/hakmem.h"
#include "observe/reports.h"
#include "observe/snapshot.h"
#include "observe/stats_block.h"
#include "os/os.h"

void text_line(struct text *text, const char *name, uint64_t value, const char *meaning) {
  text_format(text, "  %-28s%16zu  %s\n", name, value, meaning);
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

static void text_class(struct text *text, unsigned class, const uint64_t *counters) {
  text_format(text, "  %-5s%18zu", class_tier_name(class), class_bytes(class));
  for (unsigned which = 0; which < CLASS_COUNTER_COUNT; which++)
    text_format(text, "%18zu", counters[which]);
  text_char(text, '\n');
}

static void text_classes(struct text *text, const struct snapshot *snapshot) {
  text_format(text, "classes\n       %18s", "block_bytes");
#define CLASS_COUNTER(name, unit, meaning) text_format(text, "%18s", #name);
#include "base/counters.def"
  text_char(text, '\n');
  for (unsigned class = 0; class < CLASS_COUNT; class ++)
    if (snapshot->class_counters[class][0])
      text_class(text, class, snapshot->class_counters[class]);
}

static uint64_t served_blocks(const struct snapshot *snapshot) {
  return snapshot->counters[COUNT_refilled_blocks] + snapshot->counters[COUNT_large_allocs] +
         snapshot->counters[COUNT_big_allocs];
}

void report_as_text(struct text *text) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  text_format(
      text, "hakmem %s, process %u: %zu blocks fetched past the magazines (hits are not counted)\n",
      HAKMEM_VERSION, os_process_id(), served_blocks(&snapshot));
  text_memory(text, &snapshot);
  text_classes(text, &snapshot);
  text_counters(text, &snapshot);
}
