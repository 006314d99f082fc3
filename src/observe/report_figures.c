#include "base/scan.h"
#include "hakmem/hakmem.h"
#include "observe/report_heaps.h"
#include "observe/reports.h"
#include "observe/snapshot.h"
#include "observe/stats_block.h"
#include "os/os.h"

/* ---- which figures --------------------------------------------------------------------------- */

struct writer {
  struct text *text;
  void (*figure)(struct writer *writer, const char *name, uint64_t value, const char *meaning);
  const char *separator; /* JSON: before the next member */
};

typedef void section(struct writer *writer, const struct snapshot *snapshot);

static void write_memory(struct writer *writer, const struct snapshot *snapshot) {
  writer->figure(writer, "mapped_bytes", snapshot->mapped_bytes,
                 "SuperSlabs and ranges that have address space");
  writer->figure(writer, "slab_out_bytes", snapshot->slab_bytes_out,
                 "in blocks up to 64 KiB: live, or cached by threads");
  writer->figure(writer, "dirty_free_bytes", snapshot->dirty_free_bytes, "free, given back by age");
}

static void write_totals(struct writer *writer, const struct snapshot *snapshot) {
#define TOTAL(name, role, unit, meaning) writer->figure(writer, #name, snapshot->name, meaning);
#define UNSTABLE_TOTAL(name, role, unit, meaning) \
  writer->figure(writer, "unstable_" #name, snapshot->name, meaning);
#include "base/counters.def"
}

static void write_counters(struct writer *writer, const struct snapshot *snapshot) {
  for (unsigned which = 0; which < COUNTER_COUNT; which++)
    writer->figure(writer, counter_name(which), snapshot->counters[which], counter_meaning(which));
}

/* ---- as text --------------------------------------------------------------------------------- */

void text_line(struct text *text, const char *name, uint64_t value, const char *meaning) {
  text_format(text, "  %-32s%16zu  %s\n", name, value, meaning);
}

/* Figures of 0 are left out. */
static void text_figure(struct writer *writer, const char *name, uint64_t value,
                        const char *meaning) {
  if (value) text_line(writer->text, name, value, meaning);
}

static void text_classes(struct text *text, const struct snapshot *snapshot) {
  text_format(text, "classes\n       %18s", "block_bytes");
#define CLASS_COUNTER(name, unit, meaning) text_format(text, "%18s", #name);
#include "base/counters.def"
  text_char(text, '\n');
  for (unsigned class = 0; class < CLASS_COUNT; class ++) {
    const uint64_t *counters = snapshot->class_counters[class];
    if (!counters[0]) continue;
    text_format(text, "  %-5s%18zu", class_tier_name(class), class_bytes(class));
    for (unsigned which = 0; which < CLASS_COUNTER_COUNT; which++)
      text_format(text, "%18zu", counters[which]);
    text_char(text, '\n');
  }
}

static void text_mib(struct text *text, const char *name, uint64_t bytes, const char *meaning) {
  uint64_t tenths = (bytes * 10 + (1u << 19)) >> 20;
  text_format(text, "  %-12s%12zu.%zu MiB  %s\n", name, tenths / 10, tenths % 10, meaning);
}

/* A line of the process's status, in KiB. Left out where the file is hidden, or a filter forbids to
 * read it. */
static void text_resident(struct text *text, const char *name, const char *status, const char *key,
                          const char *meaning) {
  uint64_t kib = 0;
  const char *digits = scan_line(status, key);
  while (digits && (*digits == ' ' || *digits == '\t')) digits++;
  if (digits && scan_number(&digits, &kib) && kib) text_mib(text, name, kib << 10, meaning);
}

/* The answers to a user's first questions; the counters after them explain hakmem. */
static void text_summary(struct text *text, const struct snapshot *snapshot) {
  const uint64_t *counters = snapshot->counters;
  char status[4096];
  os_read_file("/proc/self/status", status, sizeof status);
  text_format(text, "hakmem %s, process %u\n", HAKMEM_VERSION, os_process_id());
  text_format(
      text, "  %-12s%14zu      or more: blocks fetched past the magazines (hits are not counted)\n",
      "mallocs",
      counters[COUNT_refilled_blocks] + counters[COUNT_large_allocs] + counters[COUNT_big_allocs]);
  text_mib(text, "live",
           snapshot->slab_bytes_out + snapshot->large_live_bytes + snapshot->big_live_bytes,
           "or less: blocks in threads' magazines are included");
  text_mib(text, "held", snapshot->committed_bytes, "by hakmem: live, cached, records");
  text_mib(text, "held, peak", snapshot->committed_peak_bytes, "the most at a time");
  text_resident(text, "RSS", status, "VmRSS:", "of the process, with its code and stacks");
  text_resident(text, "RSS, peak", status, "VmHWM:", "the most at a time");
}

void report_as_text(struct text *text) {
  struct snapshot snapshot;
  struct writer writer = {.text = text, .figure = text_figure};
  snapshot_take(&snapshot);
  text_summary(text, &snapshot);
  text_string(text, "memory (figures that are 0 are left out here and below)\n");
  write_memory(&writer, &snapshot);
  write_totals(&writer, &snapshot);
  text_classes(text, &snapshot);
  report_heaps_as_text(text);
  text_string(text, "counters\n");
  write_counters(&writer, &snapshot);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

/* Names are hakmem's own and need no escape. */
static void json_figure(struct writer *writer, const char *name, uint64_t value,
                        const char *meaning) {
  (void)meaning;
  text_format(writer->text, "%s\"%s\":%zu", writer->separator, name, value);
  writer->separator = ",";
}

static void json_section(struct text *text, const char *name, section *write,
                         const struct snapshot *snapshot) {
  struct writer writer = {.text = text, .figure = json_figure, .separator = ""};
  text_format(text, ",\"%s\":{", name);
  write(&writer, snapshot);
  text_char(text, '}');
}

static void json_class(struct text *text, unsigned class, const uint64_t *counters) {
  text_format(text, "%s{\"class\":%u,\"tier\":\"%s\",\"block_bytes\":%zu", class ? "," : "", class,
              class_tier_name(class), class_bytes(class));
#define CLASS_COUNTER(name, unit, meaning) text_format(text, ",\"" #name "\":%zu", *counters++);
#include "base/counters.def"
  text_char(text, '}');
}

void report_as_json(struct text *text) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  text_format(text, "{\"hakmem\":\"%s\",\"pid\":%u", HAKMEM_VERSION, os_process_id());
  json_section(text, "counters", write_counters, &snapshot);
  json_section(text, "totals", write_totals, &snapshot);
  json_section(text, "memory", write_memory, &snapshot);
  text_string(text, ",\"classes\":[");
  for (unsigned class = 0; class < CLASS_COUNT; class ++)
    if (class_bytes(class)) json_class(text, class, snapshot.class_counters[class]);
  text_string(text, "],\"heaps\":");
  report_heaps_as_json(text);
  text_char(text, '}');
}
