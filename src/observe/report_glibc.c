#include "observe/report_glibc.h"

#include "cache/heap.h"
#include "observe/blocks.h"
#include "observe/reports.h"
#include "observe/snapshot.h"
#include "ranges/range.h"

struct blocks {
  uint64_t in_slabs; /* free, with those freed by other threads */
  uint64_t cached, cached_bytes;
  uint64_t out_bytes; /* of blocks outside slabs: live, or cached */
};

static void add_slab(void *context, struct slab *slab, const struct slab_shape *shape,
                     unsigned free_blocks) {
  struct blocks *found = context;
  (void)slab;
  found->in_slabs += free_blocks;
  found->out_bytes += (uint64_t)(shape->capacity - free_blocks) * shape->block_bytes;
}

static void count_blocks(struct blocks *found) {
  struct cached_blocks cached;
  blocks_visit_slabs(add_slab, found);
  blocks_count_cached(&cached);
  found->cached_bytes = cached.range_bytes;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    found->cached += cached.of_class[class];
    found->cached_bytes += cached.of_class[class] * class_bytes(class);
  }
}

static uint64_t smaller(uint64_t one, uint64_t other) { return one < other ? one : other; }

void glibc_figures_take(struct glibc_figures *figures) {
  struct snapshot snapshot;
  struct blocks blocks = {0};
  snapshot_take(&snapshot);
  count_blocks(&blocks);
  uint64_t live_bytes = without_part(blocks.out_bytes + snapshot.large_live_bytes,
                                     blocks.cached_bytes + snapshot.uncounted_bytes);
  uint64_t held_bytes = without_part(snapshot.committed_bytes, snapshot.big_live_bytes);
  uint64_t not_live_bytes = without_part(held_bytes, live_bytes);
  uint64_t cached_bytes = smaller(blocks.cached_bytes, not_live_bytes);
  uint64_t free_bytes = not_live_bytes - cached_bytes;
  uint64_t system_bytes = live_bytes + not_live_bytes, peak_bytes = snapshot.committed_peak_bytes;
  *figures = (struct glibc_figures){
      .system_bytes = system_bytes,
      .system_peak_bytes = peak_bytes > system_bytes ? peak_bytes : system_bytes,
      .in_use_bytes = live_bytes,
      .free_blocks = blocks.in_slabs + range_count_dirty(&stray_counters),
      .free_bytes = free_bytes,
      .cached_blocks = blocks.cached,
      .cached_bytes = cached_bytes,
      .keep_bytes = smaller(snapshot.dirty_free_bytes, free_bytes),
      .mmap_blocks = snapshot.big_live_blocks,
      .mmap_bytes = snapshot.big_live_bytes,
      .mmap_peak_blocks = snapshot.big_peak_blocks,
      .mmap_peak_bytes = snapshot.big_peak_bytes,
  };
}

/* ---- malloc_info ----------------------------------------------------------------------------- */

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

/* Reported as one heap: threads' heaps pass memory on to each other. */
void report_as_malloc_info(struct text *text) {
  struct glibc_figures figures;
  glibc_figures_take(&figures);
  text_string(text, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n");
  write_free_totals(text, &figures);
  write_system(text, &figures);
  text_string(text, "</heap>\n");
  write_free_totals(text, &figures);
  write_total(text, "mmap", figures.mmap_blocks, figures.mmap_bytes);
  write_system(text, &figures);
  text_string(text, "</malloc>\n");
}

/* ---- malloc_stats ---------------------------------------------------------------------------- */

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
