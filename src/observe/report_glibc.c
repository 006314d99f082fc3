#include "observe/report_glibc.h"

#include "cache/heap.h"
#include "observe/reports.h"
#include "observe/snapshot.h"

/* ---- the figures ------------------------------------------------------------------------------------------ */

static void add_class(struct glibc_figures *figures, unsigned class) {
  figures->free_blocks += figures->blocks.in_slabs[class];
  figures->cached_blocks += figures->blocks.in_caches[class];
  figures->cached_bytes += figures->blocks.in_caches[class] * class_bytes(class);
}

/* Read one after the other while threads run, parts may exceed the whole by a little. */
static uint64_t what_is_left(uint64_t whole, uint64_t part) {
  return whole > part ? whole - part : 0;
}

void glibc_figures_take(struct glibc_figures *figures) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  *figures = (struct glibc_figures){.mmap_blocks = snapshot.big_live_blocks,
                                    .mmap_bytes = snapshot.big_live_bytes,
                                    .mmap_peak_blocks = snapshot.big_peak_blocks,
                                    .mmap_peak_bytes = snapshot.big_peak_bytes,
                                    .system_peak_bytes = snapshot.committed_peak_bytes};
  free_blocks_count(&figures->blocks);
  range_look_at_dirty(&figures->ranges, &stray_counters);
  figures->free_blocks = figures->ranges.ranges;
  for (unsigned class = 0; class < CLASS_COUNT; class ++) add_class(figures, class);
  figures->in_use_bytes = what_is_left(figures->blocks.slab_bytes_out + snapshot.large_live_bytes,
                                       figures->cached_bytes + snapshot.uncounted_bytes);
  uint64_t held_bytes = what_is_left(snapshot.committed_bytes, snapshot.big_live_bytes);
  uint64_t not_live_bytes = what_is_left(held_bytes, figures->in_use_bytes);
  figures->cached_bytes =
      figures->cached_bytes < not_live_bytes ? figures->cached_bytes : not_live_bytes;
  figures->free_bytes = not_live_bytes - figures->cached_bytes;
  figures->in_use_bytes += snapshot.guarded_live_bytes; /* outside of what is counted as held */
  figures->system_bytes = figures->in_use_bytes + not_live_bytes;
  if (figures->system_peak_bytes < figures->system_bytes)
    figures->system_peak_bytes = figures->system_bytes;
  figures->keep_bytes = snapshot.dirty_free_bytes < figures->free_bytes ? snapshot.dirty_free_bytes
                                                                        : figures->free_bytes;
}

/* ---- malloc_info ------------------------------------------------------------------------------------------ */

static void write_size(struct text *text, const char *element, uint64_t from, uint64_t to,
                       uint64_t total, uint64_t blocks) {
  text_format(text, "  <%s from=\"%zu\" to=\"%zu\" total=\"%zu\" count=\"%zu\"/>\n", element, from,
              to, total, blocks);
}

static void write_free_blocks(struct text *text, const struct glibc_figures *figures) {
  for (unsigned number = 0; number < CLASS_COUNT; number++) {
    uint64_t blocks = figures->blocks.in_slabs[number] + figures->blocks.in_caches[number];
    uint64_t bytes = class_bytes(number), from = number ? class_bytes(number - 1) + 1 : 1;
    if (blocks) write_size(text, "size", from, bytes, blocks * bytes, blocks);
  }
  const struct range_free *ranges = &figures->ranges;
  if (ranges->ranges)
    write_size(text, "unsorted", ranges->smallest_bytes, ranges->largest_bytes, ranges->bytes,
               ranges->ranges);
}

static void write_total(struct text *text, const char *type, uint64_t blocks, uint64_t bytes) {
  text_format(text, "<total type=\"%s\" count=\"%zu\" size=\"%zu\"/>\n", type, blocks, bytes);
}

static void write_free_totals(struct text *text, const struct glibc_figures *figures) {
  write_total(text, "fast", figures->cached_blocks, figures->cached_bytes);
  write_total(text, "rest", figures->free_blocks, figures->free_bytes);
}

static void write_system(struct text *text, const struct glibc_figures *figures) {
  text_format(text,
              "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
              "<aspace type=\"total\" size=\"%zu\"/>\n<aspace type=\"mprotect\" size=\"%zu\"/>\n",
              figures->system_bytes, figures->system_peak_bytes, figures->system_bytes,
              figures->system_bytes);
}

/* One heap: threads' heaps pass memory on to each other, none is one's alone. */
void report_as_malloc_info(struct text *text) {
  struct glibc_figures figures;
  glibc_figures_take(&figures);
  text_string(text, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n");
  write_free_blocks(text, &figures);
  text_string(text, "</sizes>\n");
  write_free_totals(text, &figures);
  write_system(text, &figures);
  text_string(text, "</heap>\n");
  write_free_totals(text, &figures);
  write_total(text, "mmap", figures.mmap_blocks, figures.mmap_bytes);
  write_system(text, &figures);
  text_string(text, "</malloc>\n");
}

/* ---- malloc_stats ----------------------------------------------------------------------------------------- */

void report_as_malloc_stats(struct text *text) {
  struct glibc_figures figures;
  glibc_figures_take(&figures);
  text_format(text,
              "Arena 0:\nsystem bytes     = %10zu\nin use bytes     = %10zu\n"
              "Total (incl. mmap):\nsystem bytes     = %10zu\nin use bytes     = %10zu\n"
              "max mmap regions = %10zu\nmax mmap bytes   = %10zu\n",
              figures.system_bytes, figures.in_use_bytes, figures.system_bytes + figures.mmap_bytes,
              figures.in_use_bytes + figures.mmap_bytes, figures.mmap_peak_blocks,
              figures.mmap_peak_bytes);
  report_as_text(text);
}
